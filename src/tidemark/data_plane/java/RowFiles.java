package tidemark;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Rows on their way to a sink: each task writes its own into a file, as an Arrow stream, and holds one batch of them in
 * memory. What Spark has for it keeps all rows of a task, and then of all tasks. When every task is done, the file
 * "written" names those of the tasks that count, in the order of partitions; a partition without rows has none.
 *
 * Option "folder": where; it is there, and every task reaches it. Written without generics and lambdas, which Janino,
 * the compiler that Spark brings along, knows little of.
 */
public class RowFiles implements TableProvider {

    static final int BATCH_ROWS = 10000;
    static final long BATCH_BYTES = 8L * 1024 * 1024;

    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return new StructType();
    }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        return new Rows();
    }

    public static class Rows implements SupportsWrite {

        public String name() {
            return "rows on their way to a sink";
        }

        public StructType schema() {
            return new StructType();
        }

        public Set capabilities() {
            Set found = new HashSet();
            found.add(TableCapability.BATCH_WRITE);
            found.add(TableCapability.ACCEPT_ANY_SCHEMA);
            return found;
        }

        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            return new Epoch(info.schema(), info.options().get("folder"));
        }
    }

    public static class Epoch implements WriteBuilder, BatchWrite {

        private final StructType schema;
        private final String folder;

        Epoch(StructType schema, String folder) {
            this.schema = schema;
            this.folder = folder;
        }

        public BatchWrite buildForBatch() {
            return this;
        }

        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            return new Writers(schema, folder);
        }

        /** Every attempt has a file of its own, so that of two attempts at a task either may count. */
        public boolean useCommitCoordinator() {
            return false;
        }

        public void commit(WriterCommitMessage[] messages) {
            StringBuilder names = new StringBuilder();
            for (int index = 0; index < messages.length; index++) {
                String file = ((Written) messages[index]).file;
                if (file != null) {
                    names.append(file).append('\n');
                }
            }
            try {
                Files.write(Paths.get(folder, new String[] {"written"}),
                    names.toString().getBytes(StandardCharsets.UTF_8), new OpenOption[0]);
            } catch (IOException problem) {
                throw new RuntimeException(problem);
            }
        }

        /** The folder goes with whoever made it. */
        public void abort(WriterCommitMessage[] messages) {
        }
    }

    public static class Writers implements DataWriterFactory {

        private final StructType schema;
        private final String folder;

        Writers(StructType schema, String folder) {
            this.schema = schema;
            this.folder = folder;
        }

        public DataWriter createWriter(int partition, long task) {
            return new Writer(schema, Paths.get(folder, new String[] {"rows-" + partition + "-" + task}));
        }
    }

    public static class Written implements WriterCommitMessage {

        final String file;

        Written(String file) {
            this.file = file;
        }
    }

    public static class Writer implements DataWriter {

        private final StructType schema;
        private final Path file;
        private ArrowWriter rows;
        private FileChannel channel;
        private ArrowStreamWriter stream;
        private int waiting = 0;
        private int nextLook = 1;

        Writer(StructType schema, Path file) {
            this.schema = schema;
            this.file = file;
        }

        public void write(Object row) throws IOException {
            if (stream == null) {
                open();
            }
            rows.write((InternalRow) row);
            waiting++;
            if (waiting == BATCH_ROWS || (waiting == nextLook && isLarge())) {
                writeBatch();
            }
        }

        /** Looked at after one row, two, four and so on, and sooner where half of the room will be taken by then. */
        private boolean isLarge() {
            long size = rows.sizeInBytes();
            long toHalf = (BATCH_BYTES - size) / 2 / (size / waiting + 1);
            nextLook = waiting + (int) Math.max(1L, Math.min(toHalf, (long) waiting));
            return size > BATCH_BYTES;
        }

        private void open() throws IOException {
            rows = ArrowWriter.create(schema, "UTC", true, false);
            Set how = new HashSet();
            Collections.addAll(how, new Object[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
            channel = FileChannel.open(file, how, new java.nio.file.attribute.FileAttribute[0]);
            stream = new ArrowStreamWriter(rows.root(), null, channel);
        }

        private void writeBatch() throws IOException {
            rows.finish();
            stream.writeBatch();
            rows.reset();
            waiting = 0;
            nextLook = 1;
        }

        public WriterCommitMessage commit() throws IOException {
            if (stream == null) {
                return new Written(null);
            }
            if (waiting > 0) {
                writeBatch();
            }
            stream.end();
            return new Written(file.getFileName().toString());
        }

        public void abort() throws IOException {
            Files.deleteIfExists(file);
        }

        public void close() throws IOException {
            try {
                if (channel != null) {
                    channel.close();
                }
            } finally {
                if (rows != null) {
                    rows.root().close();
                }
            }
        }
    }
}
