"""Copies of checkpoints: what belongs to an epoch, and that a copy is whole while others write and clean up."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from data_plane.checkpoint_files import commit_epoch, forget_old, unique

from tidemark.data_plane.state.snapshot import belongs, snapshot
from tidemark.errors import StateFault

PARTS = (
    ("offsets/5", True),
    ("offsets/6", False),
    ("offsets/.5.crc", True),
    ("offsets/.6.crc", False),
    ("offsets/.5.abc.tmp", False),
    ("commits/5", True),
    ("commits/6", False),
    ("tidemark/5", True),
    ("tidemark/offsets-6", False),
    ("tidemark/.5.1234", False),
    ("tidemark/lines-to-decode", True),
    ("tidemark/events-ahead", True),
    ("metadata", False),
    ("sources/orders/9", True),
    ("sources/orders/9.compact", True),
    ("sources/orders/.9.tmp", False),
    ("state/0/1/6_0a-1b.changelog", True),
    ("state/0/1/7_0a-1b.changelog", False),
    ("state/0/1/.6_0a-1b.changelog.crc", True),
    ("state/0/1/7_0a-1b.zip", False),
    ("state/0/1/SSTs/000008-0a.sst", True),
    ("state/0/_metadata/metadata", True),
    ("state/1/_metadata/v2/5", True),
    ("state/1/_metadata/v2/6", False),
    ("state/1/_stateSchema/default/0_0a-1b", True),
    ("state/1/_stateSchema/default/6_0a-1b", False),
    ("lock", False),
)


@pytest.mark.parametrize(("path", "expected"), PARTS, ids=[path for path, _ in PARTS])
def test_what_belongs_to_epoch_five(path: str, expected: bool) -> None:
    assert belongs(Path(path), 5) == expected


def test_a_copy_stands_for_the_newest_committed_epoch(tmp_path: Path) -> None:
    for epoch in range(5):
        commit_epoch(tmp_path / "from", epoch)
    (tmp_path / "from" / "commits" / "4").unlink()
    assert snapshot(tmp_path / "from", tmp_path / "to") == 3
    assert not (tmp_path / "to" / "offsets" / "4").exists()
    assert list((tmp_path / "to" / "state" / "0" / "0").glob("5_*")) == []
    assert (tmp_path / "to" / "state" / "0" / "1" / f"4_{unique(3, 1)}.zip").exists()


def test_a_query_that_has_not_begun_has_an_empty_copy(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    assert snapshot(tmp_path / "from", tmp_path / "to") is None
    assert list((tmp_path / "to").iterdir()) == []


@pytest.mark.parametrize("missing", ["state/0/1/4_*.changelog", "state/0/0/3_*", "tidemark/3", "offsets/3"])
def test_a_copy_that_lacks_something_is_refused(tmp_path: Path, missing: str) -> None:
    for epoch in range(4):
        commit_epoch(tmp_path / "from", epoch)
    for whole in (tmp_path / "from").glob("state/0/*/4_*.zip"):
        whole.unlink()
    found = list((tmp_path / "from").glob(missing))
    assert found
    for path in found:
        path.unlink()
    with pytest.raises(StateFault, match="faster than its state can be copied"):
        snapshot(tmp_path / "from", tmp_path / "to")


def test_copies_are_whole_while_epochs_go_on_and_old_state_is_cleaned_up(tmp_path: Path) -> None:
    source, done = tmp_path / "from", threading.Event()
    commit_epoch(source, 0)

    def go_on() -> None:
        epoch = 0
        # No faster than epochs can be: what is kept of old ones lasts for many of them.
        while not done.wait(0.005):
            epoch += 1
            commit_epoch(source, epoch)
            forget_old(source, epoch)

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        copies = [(tmp_path / f"copy-{number}", number) for number in range(20)]
        epochs = [snapshot(source, folder) for folder, _ in copies]
    finally:
        done.set()
        writer.join()
    assert epochs == sorted(epoch for epoch in epochs if epoch is not None)
    assert epochs[-1] != epochs[0]
    for (folder, _), epoch in zip(copies, epochs, strict=True):
        assert json.loads((folder / "tidemark" / str(epoch)).read_text())["epoch"] == epoch
        assert (folder / "offsets" / str(epoch)).read_text().endswith(f'{{"logOffset":{epoch}}}')
