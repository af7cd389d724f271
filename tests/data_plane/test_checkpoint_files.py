"""What `Checkpoint.prepare` makes of damaged folders, file by file; `test_checkpoint_recovery` runs jobs on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidemark.data_plane.checkpoint import Checkpoint
from tidemark.errors import StateFault

COMMIT = 'v2\n{"nextBatchWatermarkMs":7,"stateUniqueIds":{"0":[["ea9b907c"]]}}'
SOURCES = ("clicks", "orders")


def offsets(epoch: int) -> str:
    metadata = {"batchWatermarkMs": epoch, "batchTimestampMs": 1, "conf": {"a:b": "c"}}
    return f'v2\n{json.dumps(metadata)}\nclicks:-\norders:{{"logOffset":{epoch}}}'


def checkpoint(folder: Path, *, logged: int, committed: int, copied: int) -> Checkpoint:
    """A folder with that many epochs in each log, the checksums of Spark beside them, records for the committed."""
    made = Checkpoint(folder, SOURCES)
    made.prepare()
    for epoch in range(logged):
        _write(folder / "offsets" / str(epoch), offsets(epoch))
        _write(folder / "sources" / "orders" / str(epoch), f'v1\n{{"path":"file:///in/{epoch}","batchId":{epoch}}}')
    for epoch in range(committed):
        _write(folder / "commits" / str(epoch), COMMIT)
        made.write_record(epoch, {"epoch": epoch})
    for epoch in range(copied):
        made.keep_logged(epoch)
    _write(folder / "metadata", '{"id":"744eecb0"}')
    return made


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.with_name(f".{path.name}.crc").write_bytes(bytes(8 + 4 * (1 + (len(text) - 1) // 512)))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cut(path: Path, keep: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


@pytest.mark.parametrize(("logged", "committed", "copied"), [(3, 3, 3), (3, 2, 3), (3, 2, 2), (1, 0, 0), (1, 0, 1)])
def test_a_healthy_folder_is_left_as_it_is(tmp_path: Path, logged: int, committed: int, copied: int) -> None:
    made = checkpoint(tmp_path, logged=logged, committed=committed, copied=copied)
    before = snapshot(tmp_path)
    made.prepare()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("keep", [0, 0.02, 0.5, 0.95])
def test_a_damaged_commit_is_dropped_so_that_its_epoch_runs_again(tmp_path: Path, keep: float) -> None:
    made = checkpoint(tmp_path, logged=3, committed=3, copied=3)
    cut(tmp_path / "commits" / "2", keep)
    made.prepare()
    assert (made.last_logged(), made.last_committed()) == (2, 1)
    assert not (tmp_path / "commits" / ".2.crc").exists()


def test_an_epoch_logged_behind_a_damaged_commit_goes_too(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, logged=4, committed=3, copied=3)
    cut(tmp_path / "commits" / "2", 0.5)
    made.prepare()
    assert (made.last_logged(), made.last_committed()) == (2, 1)


@pytest.mark.parametrize("keep", [0, 0.02, 0.5, 0.95])
def test_a_damaged_commit_comes_back_from_the_copy_when_the_next_epoch_had_begun(tmp_path: Path, keep: float) -> None:
    made = checkpoint(tmp_path, logged=4, committed=3, copied=4)
    cut(tmp_path / "commits" / "2", keep)
    made.prepare()
    assert (made.last_logged(), made.last_committed()) == (3, 2)
    assert (tmp_path / "commits" / "2").read_text() == COMMIT


def test_half_a_copy_of_a_commit_is_no_copy(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, logged=4, committed=3, copied=4)
    for path in (tmp_path / "commits" / "2", tmp_path / "tidemark" / "last-commit"):
        cut(path, 0.9)
    made.prepare()
    assert (made.last_logged(), made.last_committed()) == (2, 1)


@pytest.mark.parametrize("keep", [0, 0.02, 0.5, 0.95])
@pytest.mark.parametrize("committed", [2, 3])
def test_damaged_offsets_come_back_from_the_copy(tmp_path: Path, keep: float, committed: int) -> None:
    made = checkpoint(tmp_path, logged=3, committed=committed, copied=3)
    cut(tmp_path / "offsets" / "2", keep)
    made.prepare()
    assert (tmp_path / "offsets" / "2").read_text() == offsets(2)
    assert not (tmp_path / "offsets" / ".2.crc").exists()
    assert (made.last_logged(), made.last_committed()) == (2, committed - 1)


@pytest.mark.parametrize("keep", [0, 0.02, 0.5, 0.95])
def test_damaged_offsets_of_an_epoch_that_never_ran_are_dropped(tmp_path: Path, keep: float) -> None:
    made = checkpoint(tmp_path, logged=3, committed=2, copied=2)
    cut(tmp_path / "offsets" / "2", keep)
    made.prepare()
    assert (made.last_logged(), made.last_committed()) == (1, 1)
    assert not (tmp_path / "offsets" / ".2.crc").exists()


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_offsets_cut_at_the_end_of_a_line_are_seen(tmp_path: Path, lines: int) -> None:
    made = checkpoint(tmp_path, logged=3, committed=2, copied=2)
    entry = tmp_path / "offsets" / "2"
    entry.write_text("\n".join(offsets(2).split("\n")[:lines]))
    made.prepare()
    assert made.last_logged() == 1


@pytest.mark.parametrize("keep", [0, 0.5])
def test_a_damaged_listing_that_no_epoch_refers_to_is_dropped(tmp_path: Path, keep: float) -> None:
    made = checkpoint(tmp_path, logged=2, committed=2, copied=2)
    ahead = tmp_path / "sources" / "orders" / "2.compact"
    _write(ahead, 'v1\n{"path":"file:///in/2","batchId":2}')
    cut(ahead, keep)
    made.prepare()
    assert not ahead.exists()
    assert (tmp_path / "sources" / "orders" / "1").exists()


@pytest.mark.parametrize(("name", "kept"), [("2", False), ("2.compact", True)])
def test_a_listing_ahead_of_the_log_is_made_again_unless_it_sums_up_others(
    tmp_path: Path, name: str, kept: bool
) -> None:
    made = checkpoint(tmp_path, logged=2, committed=2, copied=2)
    ahead = tmp_path / "sources" / "orders" / name
    _write(ahead, 'v1\n{"path":"file:///in/2","batchId":2}')
    made.prepare()
    assert ahead.exists() == kept
    assert (tmp_path / "sources" / "orders" / "1").exists()


def test_what_other_sources_keep_there_stays(tmp_path: Path) -> None:
    """A source of another kind keeps the offsets with which it began."""
    made = checkpoint(tmp_path, logged=2, committed=2, copied=2)
    _write(tmp_path / "sources" / "clicks" / "0", 'v1\n{"topic":{"0":17}}')
    made.prepare()
    assert (tmp_path / "sources" / "clicks" / "0").exists()


def test_what_a_first_epoch_left_before_it_was_logged_is_forgotten(tmp_path: Path) -> None:
    made = Checkpoint(tmp_path, SOURCES)
    made.prepare()
    for leftover in ("state/0/_metadata/metadata", "sources/orders/0", "offsets/.0.1f2e.tmp", "commits/.x"):
        _write(tmp_path / leftover, "v1")
    _write(tmp_path / "metadata", '{"id":"744eecb0"}')
    made.prepare()
    assert set(snapshot(tmp_path)) == {"metadata", ".metadata.crc"}


def test_state_is_kept_when_the_logs_were_taken_away(tmp_path: Path) -> None:
    """Then the ledgers of the sinks decide; nothing is destroyed on a guess."""
    made = checkpoint(tmp_path, logged=1, committed=1, copied=1)
    _write(tmp_path / "state" / "0" / "1", "state")
    for log in ("offsets", "commits"):
        (tmp_path / log / "0").unlink()
    made.prepare()
    assert (tmp_path / "state" / "0" / "1").exists()


@pytest.mark.parametrize("keep", [0, 0.5])
def test_a_damaged_identity_is_replaced(tmp_path: Path, keep: float) -> None:
    made = checkpoint(tmp_path, logged=1, committed=1, copied=1)
    cut(tmp_path / "metadata", keep)
    made.prepare()
    assert len(json.loads((tmp_path / "metadata").read_text())["id"]) == 36
    assert not (tmp_path / ".metadata.crc").exists()


@pytest.mark.parametrize("entry", ["offsets/2", "commits/2", "sources/orders/2", "metadata"])
@pytest.mark.parametrize("length", [0, 6, 8])
def test_a_cut_checksum_is_dropped_and_its_entry_kept(tmp_path: Path, entry: str, length: int) -> None:
    made = checkpoint(tmp_path, logged=3, committed=3, copied=3)
    path = tmp_path / entry
    before, checksum = path.read_bytes(), path.with_name(f".{path.name}.crc")
    checksum.write_bytes(bytes(length))
    made.prepare()
    assert path.read_bytes() == before
    assert not checksum.exists()


def test_a_lost_record_is_named(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, logged=1, committed=1, copied=1)
    (tmp_path / "tidemark" / "0").unlink()
    with pytest.raises(StateFault, match="record of epoch 0"):
        made.record(0)


BEGUN = (
    # committed, begun, logged: the epoch that sinks may hold
    (2, 2, 2, None),
    (2, 2, 3, None),
    (2, 3, 3, 2),
    # A commit that was lost, with the next epoch logged behind it.
    (2, 3, 4, 2),
    (0, 1, 1, 0),
    (0, 0, 1, None),
)


@pytest.mark.parametrize(("committed", "begun", "logged", "expected"), BEGUN)
def test_an_epoch_that_began_and_is_not_committed_is_known(
    tmp_path: Path, committed: int, begun: int, logged: int, expected: int | None
) -> None:
    made = checkpoint(tmp_path, logged=logged, committed=committed, copied=begun)
    assert made.begun() == expected
