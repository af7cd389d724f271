package tidemark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFilePermissions;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, but for one thing: without a native library, Hadoop starts a process (chmod) for every
 * file and folder that it makes, and an epoch of a small job makes sixteen. What chmod knows beyond the nine bits of
 * permissions is left to it: sticky folders, and those that hand their group on.
 */
public class LocalFiles extends LocalFileSystem {

    public LocalFiles() {
        super(new WithoutProcesses());
    }

    public static class WithoutProcesses extends RawLocalFileSystem {

        private static final int SETGID = 02000;

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            java.nio.file.Path file = pathToFile(path).toPath();
            if (permission.getStickyBit() || handsGroupOn(file)) {
                super.setPermission(path, permission);
                return;
            }
            String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL
                + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(text));
        }

        private static boolean handsGroupOn(java.nio.file.Path file) throws IOException {
            int mode = ((Integer) Files.getAttribute(file, "unix:mode", new LinkOption[0])).intValue();
            return (mode & SETGID) != 0;
        }
    }
}
