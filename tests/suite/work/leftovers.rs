//! What tasks leave in worktrees: nothing is lost, and nothing is in the way of the next task.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::worktrees::{begin, files, git};
use super::{Worker, add};
use crate::harness::{Board, PATIENCE, until};

const CALLBOARD: &str = env!("CARGO_BIN_EXE_callboard");

/// Worktrees that were moved out of the way.
fn moved(board: &Board) -> Vec<PathBuf> {
    let entries = fs::read_dir(board.file("worktrees")).unwrap().map(|entry| entry.unwrap().path());
    let mut moved: Vec<_> =
        entries.filter(|path| path.to_str().unwrap().contains(".left-")).collect();
    moved.sort();
    moved
}

fn problems(worker: &Worker) -> String {
    let problems = worker.told.iter().filter(|told| told["event"] == "problem");
    problems.map(|told| told["message"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_worktree_that_is_out_of_sight_keeps_its_commits() {
    let board = Board::new();
    begin(&board);
    let (disk, unmounted) = (board.base().join("marks/disk"), board.base().join("marks/unmounted"));
    git(&board, &["worktree", "add", "--quiet", "--detach", "marks/disk"]);
    git(&board, &["-C", "marks/disk", "commit", "--quiet", "--allow-empty", "-m", "only here"]);
    fs::rename(&disk, &unmounted).unwrap();
    for (id, options) in [
        ("a", &["--worktree", "--workflow", "w"][..]),
        ("b", &["--worktree", "--workflow", "w", "--continue"]),
    ] {
        add(&board, &[id]);
        let (summary, status) =
            Worker::start(&board, options, "echo x > $CALLBOARD_TASK_ID.txt").ends();
        assert!(status.success(), "{summary}");
        // The worker's own worktree is created again.
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
    let (summary, status) =
        Worker::start(&board, &["--worktree", "--workflow", "w"], script).ends();
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
    // It runs for longer than the worker's interval of checking the task.
    let script = format!(
        "echo x > $CALLBOARD_TASK_ID.txt; '{CALLBOARD}' --agent $CALLBOARD_AGENT complete \
         $CALLBOARD_TASK_ID 'did it'
        sleep 2; touch ../../../marks/$CALLBOARD_TASK_ID; [ $CALLBOARD_TASK_ID = well ]"
    );
    let (summary, status) =
        Worker::start(&board, &["--worktree", "--workflow", "w"], &script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!(
        (&summary["done"], &summary["lost"], &summary["tries"]),
        (&json!(2), &json!(0), &json!(2)),
        "{summary}"
    );
    for id in ["well", "badly"] {
        assert!(board.base().join("marks").join(id).exists(), "{id} came to its end");
        assert_eq!(board.task(id)["result"]["output"], "did it");
    }
    assert_eq!(files(&board, "callboard/w-1"), ["badly.txt", "shared.txt", "well.txt"]);
}

#[test]
fn what_cannot_be_put_aside_is_moved_away_and_spoils_no_later_task() {
    let board = Board::new();
    begin(&board);
    git(&board, &["init", "--quiet", "marks/lib"]);
    fs::write(board.base().join("marks/lib/lib.txt"), "one\n").unwrap();
    git(&board, &["-C", "marks/lib", "add", "."]);
    git(&board, &["-C", "marks/lib", "commit", "--quiet", "-m", "lib"]);
    let lib = board.base().join("marks/lib");
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add"];
    git(&board, &[&allowed[..], &[lib.to_str().unwrap(), "lib"]].concat());
    git(&board, &["commit", "--quiet", "-m", "with a submodule"]);
    add(&board, &["empty", "nested", "locked", "submodule", "vanished", "last"]);
    let script = r#"git() { command git -c user.name=t -c user.email=t@t -c protocol.file.allow=always "$@"; }
        case $CALLBOARD_TASK_ID in
        empty) echo x > beside.txt; git add beside.txt; git commit -q -m half; git init -q sub; exit 78;;
        nested) git init -q sub; echo x > sub/inner.txt; git -C sub add .; git -C sub commit -q -m inner; exit 78;;
        locked) echo x > locked.txt; touch $(git rev-parse --git-dir)/index.lock; exit 78;;
        submodule) git submodule --quiet update --init; echo more >> lib/lib.txt;;
        vanished) [ $CALLBOARD_TRY = 1 ] && rm -rf "$PWD" || echo x > vanished.txt;;
        last) echo x > last.txt;;
        esac"#;
    let options = [
        "--worktree",
        "--workflow",
        "w",
        "--continue-on-error",
        "--breaker",
        "0",
        "--backoff",
        "0",
    ];
    let mut worker = Worker::start(&board, &options, script);
    let (summary, _) = worker.ends();
    assert_eq!((&summary["done"], &summary["parked"]), (&json!(3), &json!(3)), "{summary}");
    assert_eq!(files(&board, "callboard/w-1"), ["last.txt", "shared.txt", "vanished.txt"]);
    assert_eq!(files(&board, "refs/callboard/locked/1"), ["locked.txt", "shared.txt"]);
    assert_eq!(files(&board, "refs/callboard/empty/1"), ["beside.txt", "shared.txt"]);
    let (moved, problems) = (moved(&board), problems(&worker));
    assert_eq!(moved.len(), 2, "{problems}");
    assert!(moved[0].join("sub/.git").is_dir() && moved[1].join("sub/inner.txt").is_file());
    for path in moved {
        assert!(problems.contains(path.to_str().unwrap()), "{problems}");
        // It is still a worktree, so that git can show what was done there.
        git(&board, &["-C", path.to_str().unwrap(), "log", "-1"]);
    }
}

#[test]
fn a_git_that_a_killed_worker_left_is_ended_with_its_lock() {
    let board = Board::new();
    begin(&board);
    let filter = "touch ../../../marks/adding; [ -e ../../../marks/again ] || sleep 600; cat";
    git(&board, &["config", "filter.slow.clean", filter]);
    fs::write(board.base().join(".git/info/attributes"), "slow.txt filter=slow\n").unwrap();
    add(&board, &["a"]);
    let script = "[ ! -e ../../../marks/adding ] || touch ../../../marks/again; echo x > slow.txt";
    let options = ["--worktree", "--workflow", "w", "--continue", "--retries", "0"];
    let mut worker = Worker::start(&board, &options, script);
    until(PATIENCE, "git adds", || board.base().join("marks/adding").exists().then_some(()));
    worker.kill();
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert!(status.success(), "{summary}");
    let commit = board.task("a")["result"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(files(&board, &commit), ["shared.txt", "slow.txt"]);
    assert_eq!(moved(&board), Vec::<PathBuf>::new());
}

#[test]
fn a_worktree_begins_at_the_commit_where_the_work_was_started() {
    let board = Board::new();
    begin(&board);
    git(&board, &["worktree", "add", "--quiet", "-b", "topic", "marks/linked"]);
    let linked = board.base().join("marks/linked");
    fs::write(linked.join("topic.txt"), "x\n").unwrap();
    git(&board, &["-C", "marks/linked", "add", "."]);
    git(&board, &["-C", "marks/linked", "commit", "--quiet", "-m", "topic"]);
    add(&board, &["a"]);
    let work = ["work", "--worktree", "--workflow", "w", "--exec", "true"];
    let ran = board.finish(board.command().args(work).current_dir(linked));
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(files(&board, "callboard/w-1"), ["shared.txt", "topic.txt"]);
}

#[test]
fn a_directory_that_is_gone_is_named() {
    let board = Board::new();
    add(&board, &["a", "b"]);
    let dir = board.base().join("dir");
    fs::create_dir(&dir).unwrap();
    let work = ["--json", "work", "--exec", "mv ../dir ../elsewhere"];
    let ran = board.finish(board.command().args(work).current_dir(&dir));
    assert_eq!(ran.status.code(), Some(1), "{}{}", ran.stdout, ran.stderr);
    let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let reason = summary["reason"].as_str().unwrap();
    assert!(reason.contains(&format!("{} is not there any more", dir.display())), "{reason}");
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("done"), &json!("available"))
    );
}

#[test]
fn a_worktree_does_without_the_directory_that_the_work_was_started_in() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a", "b"]);
    let dir = board.base().join("marks/dir");
    fs::create_dir(&dir).unwrap();
    let options =
        ["--json", "work", "--worktree", "--workflow", "w", "--retries", "0", "--max-tasks", "2"];
    let command = ["--", "rm", "-rf", dir.to_str().unwrap()];
    let ran = board.finish(board.command().args(options).args(command).current_dir(&dir));
    assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        (&board.task("a")["status"], &board.task("b")["status"]),
        (&json!("done"), &json!("done"))
    );
}

#[test]
fn a_file_that_differs_however_often_it_is_set_back_moves_no_worktree_away() {
    let board = Board::new();
    begin(&board);
    fs::write(board.base().join("ends.txt"), "one\r\ntwo\r\n").unwrap();
    git(&board, &["add", "ends.txt"]);
    git(&board, &["commit", "--quiet", "-m", "as it was"]);
    fs::write(board.base().join(".gitattributes"), "*.txt text\n").unwrap();
    git(&board, &["add", ".gitattributes"]);
    git(&board, &["commit", "--quiet", "-m", "as it is to be"]);
    add(&board, &["a", "b"]);
    let script = "echo x > $CALLBOARD_TASK_ID.txt; exit 78";
    let options = ["--worktree", "--workflow", "w", "--continue-on-error"];
    assert!(!Worker::start(&board, &options, script).ends().1.success());
    assert_eq!(moved(&board), Vec::<PathBuf>::new());
    assert!(files(&board, "refs/callboard/a/1").contains(&"a.txt".to_owned()));
    assert!(!files(&board, "refs/callboard/b/1").contains(&"a.txt".to_owned()));
}

/// A git that fails for certain arguments, as on a full disk.
fn failing_git(board: &Board, arguments: &str) -> String {
    let (bin, path) = (board.base().join("marks/bin"), std::env::var("PATH").unwrap());
    fs::create_dir_all(&bin).unwrap();
    let full = board.base().join("marks/full");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'{arguments}'*) [ ! -e '{}' ] || exit 1;; esac\nPATH='{path}' exec git \"$@\"\n",
        full.display()
    );
    fs::write(&full, "").unwrap();
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", bin.display())
}

#[test]
fn a_worktree_that_cannot_be_moved_away_is_in_the_way_only_until_it_can() {
    let board = Board::new();
    begin(&board);
    add(&board, &["nested", "last"]);
    let path = failing_git(&board, "update-ref --no-deref HEAD");
    let script =
        "[ $CALLBOARD_TASK_ID = last ] || { git init -q sub; exit 78; }; echo x > last.txt";
    let work = |options: &[&str]| {
        let options =
            [&["--json", "work", "--worktree", "--workflow", "w", "--continue-on-error"], options]
                .concat();
        board.finish(
            board.command().env("PATH", &path).args(options).args(["--", "sh", "-c", script]),
        )
    };
    let ran = work(&[]);
    assert!(
        !ran.status.success() && ran.stdout.contains("could not be taken off its branch"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        (moved(&board).len(), &board.task("last")["status"]),
        (0, &json!("available")),
        "{}",
        ran.stdout
    );
    fs::remove_file(board.base().join("marks/full")).unwrap();
    let ran = work(&["--continue"]);
    assert_eq!(
        (moved(&board).len(), &board.task("last")["status"]),
        (1, &json!("done")),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert_eq!(files(&board, "callboard/w-1"), ["last.txt", "shared.txt"]);
}

#[test]
fn a_worktree_that_was_moved_away_with_its_branch_gives_it_back() {
    let board = Board::new();
    begin(&board);
    add(&board, &["a"]);
    let options = ["--worktree", "--workflow", "w", "--continue"];
    let (summary, status) =
        Worker::start(&board, &options, "echo x > $CALLBOARD_TASK_ID.txt").ends();
    assert!(status.success(), "{summary}");
    let (path, away) = (board.file("worktrees/w-1"), board.file("worktrees/w-1.left-1"));
    git(&board, &["worktree", "move", path.to_str().unwrap(), away.to_str().unwrap()]);
    add(&board, &["b"]);
    let (summary, status) =
        Worker::start(&board, &options, "echo x > $CALLBOARD_TASK_ID.txt").ends();
    assert!(status.success(), "{summary}");
    assert_eq!(files(&board, "callboard/w-1"), ["a.txt", "b.txt", "shared.txt"]);
}

#[test]
fn a_lock_that_is_left_keeps_no_task_from_being_committed_nor_tried_again() {
    let board = Board::new();
    begin(&board);
    add(&board, &["done", "again"]);
    let script = "echo x > $CALLBOARD_TASK_ID.txt; [ $CALLBOARD_TASK_ID.$CALLBOARD_TRY = again.2 \
                  ] && exec git add .
        touch $(git rev-parse --git-dir)/index.lock; [ $CALLBOARD_TASK_ID = done ]";
    let options = ["--worktree", "--workflow", "w", "--retries", "1", "--backoff", "0"];
    let (summary, status) = Worker::start(&board, &options, script).ends();
    assert!(status.success(), "{summary}");
    assert_eq!((&summary["done"], &summary["tries"]), (&json!(2), &json!(3)), "{summary}");
    assert_eq!(files(&board, "callboard/w-1"), ["again.txt", "done.txt", "shared.txt"]);
}

#[test]
fn a_repository_inside_the_worktree_of_a_completed_task_is_told_of() {
    let board = Board::new();
    begin(&board);
    add(&board, &["nested", "later"]);
    let script = "[ $CALLBOARD_TASK_ID = nested ] || exit 0; git init -q sub; cd sub; echo x > \
                  inner.txt; git add .
        git -c user.name=t -c user.email=t@t commit -q -m inner";
    let mut worker = Worker::start(&board, &["--worktree", "--workflow", "w"], script);
    let (summary, status) = worker.ends();
    assert!(status.success(), "{summary}");
    let problems = problems(&worker);
    let inside = board.file("worktrees/w-1/sub");
    assert!(problems.contains("nested: sub is a repository of its own"), "{problems}");
    assert!(
        problems.contains(inside.to_str().unwrap()) && !problems.contains("later"),
        "{problems}"
    );
    assert!(inside.join("inner.txt").is_file());
}

#[test]
fn what_a_task_has_begun_in_git_is_ended_with_it() {
    let board = Board::new();
    begin(&board);
    add(&board, &["rebase", "merge", "search", "pick", "nested", "last"]);
    let script = r#"git() { command git -c user.name=t -c user.email=t@t -c core.editor=true "$@"; }
        other() { git checkout -q -b $1; echo $1 > shared.txt; git commit -q -am $1; git checkout -q callboard/w-1; }
        own() { echo mine > shared.txt; git commit -q -am mine; }
        case $CALLBOARD_TASK_ID in
        rebase) echo x > tracked.txt; git add .; git commit -q -m tracked; other side; own
            echo stashed > tracked.txt; git rebase --autostash side; exit 78;;
        merge) git merge -q -s ours --no-commit side; exit 78;;
        search) git bisect start -q; git bisect bad; exit 78;;
        pick) own; git cherry-pick side~1 side; exit 78;;
        nested) own; git rebase side; git init -q sub; exit 78;;
        esac
        git rebase --abort || git merge --abort || git cherry-pick --abort || git bisect bad && exit 78
        echo x > last.txt"#;
    let options = ["--worktree", "--workflow", "w", "--continue-on-error", "--breaker", "0"];
    let mut worker = Worker::start(&board, &options, script);
    let (summary, _) = worker.ends();
    assert_eq!(
        (&summary["done"], &summary["parked"]),
        (&json!(1), &json!(5)),
        "{summary} {}",
        problems(&worker)
    );
    assert_eq!(files(&board, "callboard/w-1"), ["last.txt", "shared.txt"]);
    let commit = board.task("last")["result"]["commit"].as_str().unwrap().to_owned();
    assert_eq!(git(&board, &["log", "--format=%s", &format!("{commit}~1")]), "first\n");
    assert_eq!(git(&board, &["rev-list", "--count", &commit]), "2\n");
    let kept = git(&board, &["for-each-ref", "--format=%(refname)", "refs/callboard/rebase"]);
    let stashed =
        |name: &&str| git(&board, &["show", &format!("{name}:tracked.txt")]) == "stashed\n";
    let with_tracked = |name: &&str| files(&board, name).contains(&"tracked.txt".to_owned());
    assert!(kept.lines().filter(with_tracked).any(|name| stashed(&name)), "{kept}");
    assert_eq!(git(&board, &["stash", "list"]), "");
}
