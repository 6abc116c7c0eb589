"""A file transfer as a user runs it: on a virtual rig, through SSH and real agents."""

from user import User


def test_a_file_is_put_from_disk_to_disk_beside_the_stream(user: User) -> None:
    scenario = user.scenario(
        "rig: gigablox\ntest: file\npairs: [pi1 -> pi2]\nduration: 20s\n"
        "matrix: {size: 10M, read: [disk, memory], write: [disk, memory]}\n"
    )
    said = user.rigctl("run", scenario, "--report", "f.html", deadline_s=90).replace("\n", " ")
    assert "The fastest transfer of 10 MiB" in said
    assert "% of memory to memory" in said
    assert "Sync" in (user.folder / "f.html").read_text()


def test_a_folder_that_is_not_there_fails_the_cell_with_the_nodes_own_words(user: User) -> None:
    scenario = user.scenario(
        "rig: gigablox\ntest: file\npairs: [pi1 -> pi2]\nduration: 5s\nfolder: /not/here\nmatrix: {size: 1M}\n"
    )
    said = user.rigctl("run", scenario, "--no-report", code=3).replace("\n", " ")
    assert "folder /not/here: No such file or directory" in said
