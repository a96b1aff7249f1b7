//! What tasks leave behind in worktrees: nothing of it is lost, and nothing of it is in the way of the next task.

use std::fs;

use super::worktrees::{begin, files, git};
use super::{Worker, add};
use crate::harness::Board;

#[test]
fn a_worktree_that_is_out_of_sight_keeps_its_commits() {
    let board = Board::new();
    begin(&board);
    let (disk, unmounted) = (board.base().join("marks/disk"), board.base().join("marks/unmounted"));
    git(&board, &["worktree", "add", "--quiet", "--detach", "marks/disk"]);
    git(&board, &["-C", "marks/disk", "commit", "--quiet", "--allow-empty", "-m", "only here"]);
    fs::rename(&disk, &unmounted).unwrap();
    for (id, options) in
        [("a", &["--worktree", "--workflow", "w"][..]), ("b", &["--worktree", "--workflow", "w", "--continue"])]
    {
        add(&board, &[id]);
        let (summary, status) = Worker::start(&board, options, "echo x > $CALLBOARD_TASK_ID.txt").ends();
        assert!(status.success(), "{summary}");
        // The worker's own is made anew.
        fs::remove_dir_all(board.file("worktrees/w-1")).unwrap();
    }
    assert_eq!(files(&board, "callboard/w-1"), ["a.txt", "b.txt", "shared.txt"]);
    fs::rename(&unmounted, &disk).unwrap();
    assert_eq!(git(&board, &["-C", "marks/disk", "log", "-1", "--format=%s"]), "only here\n");
}
