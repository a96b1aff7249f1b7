//! What tasks leave behind in worktrees: nothing of it is lost, and nothing of it is in the way of the next task.

use std::fs;

use serde_json::json;

use super::worktrees::{begin, files, git};
use super::{Worker, add};
use crate::harness::Board;

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

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

#[test]
fn the_commit_of_a_completed_task_stays_on_a_ref_wherever_later_tasks_go() {
    let board = Board::new();
    begin(&board);
    let ids = ["plain", "detached", "branched", "rewound", "last"];
    add(&board, &ids);
    let script = "case $CALLBOARD_TASK_ID in
        detached) git checkout -q --detach HEAD~1;;
        branched) git checkout -q -b feature HEAD~1;;
        rewound) git reset -q --hard HEAD~1;;
        esac; echo x > $CALLBOARD_TASK_ID.txt";
    let (summary, status) = Worker::start(&board, &["--worktree", "--workflow", "w"], script).ends();
    assert!(status.success(), "{summary}");
    for id in ids {
        let result = board.task(id)["result"].clone();
        let commit = result["commit"].as_str().unwrap();
        assert!(files(&board, commit).contains(&format!("{id}.txt")), "{result}");
        assert_ne!(git(&board, &["for-each-ref", "--contains", commit]), "", "{id}: {result}");
    }
}

#[test]
fn a_task_that_its_own_command_completes_is_committed_like_any_other() {
    let board = Board::new();
    begin(&board);
    add(&board, &["well", "badly"]);
    // It goes on for longer than the worker takes to look whether the task is still its own.
    let script = format!(
        "echo x > $CALLBOARD_TASK_ID.txt; '{CALLBOARD}' --agent $CALLBOARD_AGENT complete $CALLBOARD_TASK_ID 'did it'
        sleep 2; touch ../../../marks/$CALLBOARD_TASK_ID; [ $CALLBOARD_TASK_ID = well ]"
    );
    let (summary, status) = Worker::start(&board, &["--worktree", "--workflow", "w"], &script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!((&summary["done"], &summary["lost"], &summary["tries"]), (&json!(2), &json!(0), &json!(2)), "{summary}");
    for id in ["well", "badly"] {
        assert!(board.base().join("marks").join(id).exists(), "{id} came to its end");
        assert_eq!(board.task(id)["result"]["output"], "did it");
    }
    assert_eq!(files(&board, "callboard/w-1"), ["badly.txt", "shared.txt", "well.txt"]);
}
