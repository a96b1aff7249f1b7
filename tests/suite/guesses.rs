//! Command lines as newcomers guess them, by kind: each works, or the answer names a line that does.

use std::collections::HashMap;
use std::thread;

use serde_json::{Value, json};

use crate::harness::Board;

/// A guess, and the line whose output it has. Both only read.
const SAME: &str = "
# nouns before verbs, and after them
task list => tasks
tasks list => tasks
tasks ls => tasks
task ls --json => tasks --json
issue list => tasks
issues => tasks
tickets list => tasks
list tasks => tasks
get tasks => tasks
ls tasks => tasks
show tasks => tasks
view issues => tasks
get task 1 => show 1
show task 1 => show 1
describe task 1 => show 1
task show 1 => show 1
task view 1 => show 1
tasks show 1 => show 1
tasks get 1 => show 1
issue view 1 => show 1
ticket 1 => show 1
tasks 1 => show 1
task 1 => show 1
task describe 1 --json => show 1 --json
agents list => agents
agent list => agents
agent ls => agents
list agents => agents
get agents => agents
workers => agents
users => agents
bots list => agents
show agents => agents
agents show ada-1 => show ada-1
agent show ada-1 => show ada-1
describe agent ada-1 => show ada-1
agent ada-1 => show ada-1
agents ada-1 => show ada-1
agents log ada-1 => log ada-1
task log 1 => log 1
token ls => token list
tokens => token list
tokens list => token list
list tokens => token list
show status => status
get status => status
show history => history
list reviews => tasks --status review
reviews => tasks --status review
review list => tasks --status review
pr list => tasks --status review
show reviews => tasks --status review
questions => answer
list questions => answer
question list => answer
phases => tree
milestones list => tree
snapshots list => snapshot list
snapshot ls => snapshot list
plans show => plan list
events => history
# a thing alone, or before its verb
1 => show 1
'#1' => show 1
P1 => show P1
P1.M1 => show P1.M1
p1.m1 => show P1.M1
Q1 => show Q1
q1 => show Q1
ada-1 => show ada-1
Ada-1 => show ada-1
bob => show bob
1 show => show 1
1 log => log 1
1 --json => show 1 --json
task-1 => show 1
T1 => show 1
task 1 log => log 1
agent logs ada-1 => log ada-1
ada-1 log => log ada-1
list open tasks => tasks --status open
show failed tasks => tasks --status failed
show me task 1 => show 1
show all tasks => tasks
show my tasks => tasks --of human
my tasks => tasks --of human
get_task 1 => show 1
get_status => status
get-all-tasks => tasks
list-tasks => tasks
show-task 1 => show 1
snapshots => snapshot list
plans => plan list
tree list => tree
notify list => notify
help tasks list => help tasks
--status => status
--tasks => tasks
# other words
inspect 1 => show 1
cat 1 => show 1
details 1 => show 1
display 1 => show 1
open 1 => show 1
read 1 => show 1
dashboard => status
summary => status
overview => status
progress => status
stuck => status
eta => status
projects => status
logs => log
logs ada-1 => log ada-1
activity => log
timeline => log
recent => log
blame 1 => log 1
todo => tasks --ready
next => tasks --ready
backlog => tasks --ready
queue => tasks --ready
ready --json => tasks --ready --json
doing => tasks --status doing
wip => tasks --status doing
in-progress => tasks --status doing
in_progress => tasks --status doing
completed => tasks --status done
finished => tasks --status done
pending => tasks --status open
failures => tasks --failed
errors => tasks --failed
failed => tasks --failed
blocked => tasks --blocked
waiting => tasks --blocked --waiting
mine => tasks --of human
why 2 => explain 2
deps 2 => explain 2
dependencies => tasks --blocked
search lexer => tasks --search lexer
find the lexer => tasks --search 'the lexer'
grep lexer => tasks --search lexer
burndown => report
velocity => report
output 3 => results 3
outcome => results
graph => tasks --graph
roadmap => tree
alerts => notify
notifications => notify
version => --version
-v => --version
commands => help
docs => help
tutorial => help
usage => help
examples => help
help all => help
help tokens => help token
help logs => help log
help search => help tasks
tasks help => help tasks
stop help => help stop
-? => --help
permissions => agents
try => retry
# another case
Status => status
TASKS => tasks
Agents => agents
SHOW 1 => show 1
# other options
tasks -n 2 => tasks --limit 2
tasks -n2 => tasks --limit 2
tasks --max 2 => tasks --limit 2
tasks -a => tasks
tasks -l => tasks
ls -la => tasks
tasks -q => tasks
tasks -v => tasks
-q tasks => tasks
tasks -o json => tasks --json
tasks --format json => tasks --json
tasks --format=json => tasks --json
tasks --output json => tasks --json
agents -o json => agents --json
tasks -o wide => tasks
tasks --output=table => tasks
tasks --done => tasks --status done
tasks --closed => tasks --status done
tasks --open => tasks --status open
tasks --review => tasks --status review
tasks --in-review => tasks --status review
tasks --in-progress => tasks --status in_progress
tasks --doing => tasks --status doing
tasks --cancelled => tasks --status cancelled
tasks --mine => tasks --of human
tasks --assignee ada-1 => tasks --of ada-1
tasks --owner ada-1 => tasks --of ada-1
tasks --label parser => tasks --tag parser
tasks --labels parser => tasks --tag parser
tasks --state open => tasks --status open
tasks -s failed => tasks --status failed
tasks --query lexer => tasks --search lexer
tasks --order-by priority => tasks --sort priority
tasks --under P1 => tasks --scope P1
tasks --sort prio => tasks --sort priority
tasks --sort=updated => tasks --sort changed
tasks --sort=-priority => tasks --sort priority --reverse
tasks --status all => tasks
tasks --status 'in progress' => tasks --status in_progress
tasks -g lexer => tasks --search lexer
tasks --table => tasks
log --tail 2 => log --limit 2
tasks lexer => tasks --search lexer
ls the lexer => tasks --search 'the lexer'
tasks P1.M1 => tasks --scope P1.M1
tasks failed => tasks --status failed
tasks done => tasks --status done
status 1 => show 1
status -s => status --line
status --short => status --line
status -v => status --all
status --verbose => status --all
status P1 => status --scope P1
log -n 2 => log --limit 2
log -2 => log --limit 2
log --oneline => log
log --author ada-1 => log ada-1
log --task 1 => log 1
log --since 1h => history --since 1h
log 1 --since 1h => history --task 1 --since 1h
history 1 => log 1
history ada-1 => log ada-1
history -n 3 => history --limit 3
show 1 --diff => diff 1
show --id 1 => show 1
show 1 --log => log 1
diff 1 --stat => diff 1
status --no-color => status --color never
status --colour => status --color always
export --format csv => export csv
discoveries lexer => discoveries --search lexer
# other values
tasks --status Failed => tasks --status failed
tasks --status READY => tasks --ready
tasks --status ready => tasks --ready
tasks --status blocked => tasks --blocked
tasks --status waiting => tasks --waiting
tasks --status wip => tasks --status doing
tasks --status in-progress => tasks --status in_progress
tasks --status closed => tasks --status done
tasks --status todo => tasks --status available
tasks --of @ada-1 => tasks --of ada-1
tasks --of ADA-1 => tasks --of ada-1
tasks --of me => tasks --of human
log @ada-1 => log ada-1
how far => status
how far are we => status
what has failed => tasks --failed
what is blocked => tasks --blocked
what is ready => tasks --ready
what did ada-1 do => log ada-1
what has 1 changed => log 1
changes 1 => diff 1
attention => status
show keywords => show 2
show KEYWORDS => show 2
show names-and-keywords => show 2
show t2 => show 2
show '#02' => show 2
show 'task 2' => show 2
show Ada-1 => show ada-1
log me => log human
";

/// A guess, and the line that the answer names.
const NAMED: &str = "
rm 1 => cancel 1
delete 1 => cancel 1
remove 1 2 => cancel 1 2
task delete 1 => cancel 1
tasks rm 1 => cancel 1
del 1 -f => cancel 1
canel 1 => cancel 1
rm ada-1 => agents forget ada-1
agents rm ada-1 => agents forget ada-1
agent delete ada-1 => agents forget ada-1
forget ada-1 => agents forget ada-1
kill ada-1 => stop ada-1
kill -9 ada-1 => stop ada-1
kill bob => stop bob
rm bob => agents forget bob
terminate ada-1 => stop ada-1
halt => pause
disconnect ada-1 => stop ada-1
ban ada-1 => pause ada-1
freeze => pause
suspend ada-1 => pause ada-1
stop --all => pause
stop all => pause
stop ada-1 --force => stop ada-1 --now
thaw => resume
restart ada-1 => resume ada-1
restart 1 => retry 1
rerun 1 => retry 1
reopen 1 => retry 1
requeue 1 => retry 1
task restart 1 => retry 1
1 restart => retry 1
accept 3 => approve 3
lgtm 3 => approve 3
merge 3 => approve 3
review 3 => approve 3
pr 3 => diff 3
approve --all => approve
approve all => approve
deny 3 'wrong names' => reject 3 'wrong names'
decline 3 wrong names => reject 3 'wrong names'
prioritize 1 => edit 1 --priority 1
bump 1 => edit 1 --priority 1
top 1 => edit 1 --priority 1
first 1 => edit 1 --priority 1
postpone 1 => edit 1 --priority 10
skip 1 => edit 1 --priority 10
hold 1 => edit 1 --priority 10
hold ada-1 => pause ada-1
drain => pause
cordon ada-1 => pause ada-1
uncordon ada-1 => resume ada-1
pri 1 A => edit 1 --priority 1
depri 1 => edit 1 --priority 10
resubmit 1 => retry 1
move 1 P2 => edit 1 --priority 1
mv 1 P2 => plan import PLAN.md
rename 1 'Another title' => edit 1 --title 'Another title'
rename 1 Another title => edit 1 --title 'Another title'
label 1 urgent => edit 1 --tag urgent
tag 1 urgent => edit 1 --tag urgent
add label 1 urgent => edit 1 --tag urgent
untag 1 => edit 1 --no-tags
depend 1 2 => edit 1 --depends 2
block 1 2 => edit 1 --depends 2
link 1 2 => edit 1 --depends 2
block 1 => edit 1 --depends OTHER
unblock 1 => edit 1 --no-depends
edit 1 --status done => approve 1
edit 1 --assignee ada-1 => assign 1 AGENT
edit 1 --remove-label x => edit 1 --no-tags --tag TAG
edit 1 --parent P2 => plan import PLAN.md
comment 1 'look at this' => send task:1 'look at this'
note 1 'look at this' => send task:1 'look at this'
annotate 1 look => send task:1 look
comment 1 'look at this' => edit 1 --description TEXT
add Docs --assignee ada-1 => assign TASK AGENT
add Docs --due tomorrow => report
add Docs --parent P1 => add Docs --path P1.M1.T1
split 1 => show 1
duplicate 1 => show 1
message ada-1 hello => send ada-1 hello
msg ada-1 'hello there' => send ada-1 'hello there'
msg ada-1 hello there => send ada-1 'hello there'
tell ada-1 hello => send ada-1 hello
dm ada-1 hello => send ada-1 hello
say 'hello all' => send all 'hello all'
broadcast hello all => send all 'hello all'
ask ada-1 'how far?' => send ada-1 'how far?' --request
ask 'how far?' => answer
attach ada-1 => log ada-1
ssh ada-1 => send ada-1 TEXT
exec ada-1 ls => log ada-1
spawn 3 => work --agents 3 -- COMMAND
scale 5 => work --agents 3 -- COMMAND
up => work --agents 3 -- COMMAND
start => work --agents 3 -- COMMAND
down => pause
shutdown => pause
unassign 1 => assign 1
unclaim 1 => release 1
handoff 1 ada-1 => assign 1 ada-1
delegate 1 ada-1 => assign 1 ada-1
token create bob => token add bob
token rm bob => token revoke bob
tokens used => report
tokens spent => checkpoint list
token usage => report
token delete bob => token revoke bob
create token bob => token add bob
revoke token bob => token revoke bob
invite bob => connect claude
login => connect claude
whoami => agents
setup => init GOAL
install => connect claude
config => help settings
config get lease => help settings
settings => help settings
config set lease 5m => help settings
env => help settings
subscribe => notify
mute => notify
notify on => notify
notify --desktop => notify
webhook add http://127.0.0.1:9/x => notify
upgrade => --version
repair => doctor --repair
doctor --fix => doctor --repair
save => snapshot create
load x.md => import x.md
dump => export
sync => backup FILE
push => serve
prune => tasks --status done
archive 1 => tasks --status done
clean => tasks --status done
alias => completions bash
gui => web
browser => web
server => serve
costs => report
worktrees => agents
branches => agents
files => guard FILE
locks => guard FILE
top => ui
monitor => ui
tail => watch
tasks -w => ui
tasks --watch => status --watch
agents -w => status --watch
allow ada-1 => agents
artifact add 1 x.html => artifact attach 1 x.html
set => edit TASK --priority 1
update => edit TASK --priority 1
done => tasks --status done
init => init GOAL
show => show TASK
undo --list => history
status -C /tmp => --dir PROJECT/.coordination status
status /tmp/x => --dir PROJECT/.coordination status
tasks -o yaml => tasks --json
reject 3 => reject 3 REASON
fail 1 => fail 1 ERROR
abort ada-1 => stop ada-1
respond Q1 yes => answer Q1 yes
mark 1 done => done 1 TEXT
tasks --csv => export csv
backup create => backup FILE
backup list => snapshot list
snapshot save => snapshot create
task comment 1 'look at this' => send task:1 'look at this'
who has src/x.rs => guard src/x.rs
add-tag 1 urgent => edit 1 --tag urgent
# slips of the finger
stauts => status
taks => tasks
tsaks => tasks
agnets => agents
aprove 3 => approve 3
anwser Q1 yes => answer Q1 yes
hlep => help
hsitory => history
tasks --faild => tasks --failed
tasks --jsno => tasks --json
tasks --piority 1 => tasks --priority 1
# names
stop cluade-1 => stop claude-1
stop 1 => stop ada-1
pause 1 => pause ada-1
show nobody => tasks
log nobody => tasks
log Q1 => answer Q1 TEXT
explain ada-1 => log ada-1
zzz => help
tasks --zzz => help tasks
notify zzz => help notify
";

/// Guesses that change something, which therefore work; each on the board as those before it left
/// it.
const DONE: &str = "
add Write the docs
add task 'Write docs'
task add 'Write docs'
tasks add 'Write docs'
create task 'Write docs'
new issue 'Write docs'
task create --title 'Write docs'
add --title 'Write docs'
add -m 'Write docs'
add 'Write docs' --body 'All of it'
add 'Write docs' --description 'All of it'
add 'Write docs' -p 1
add 'Write docs' --priority high
add 'Write docs' --label docs
add 'Write docs' -l docs
add 'Write docs' --depends-on 2
add 'Write docs' --blocked-by 2
edit 2 --desc 'long'
edit 2 -m 'long'
edit 2 -p 2
edit 2 --add-label urgent
edit 2 --labels urgent
edit 2 --blocked-by 1
edit 2 5 --priority 3
set 2 priority 1
modify 2 priority:1
2 modify priority:1
set priority 2 1
set-priority 2 1
add-task 'Write docs'
create_task 'Write docs'
issue create 'Write docs' --body 'text' --label docs
send everyone hi
set 2 title Names and more keywords
edit 2 --title 'Names and keywords'
edit 2 +urgent
task edit 2 --priority 4
send ada-1 hi there
send ADA-1 hi
send @ada-1 hi
send task:1 hi there
send ada-1 -m 'hi there'
assign 5 to bob
assign bob 5
assign 5 --to bob
assign 5 @bob
assign task 5 bob
assign 5
pause all
pause --all
resume all
pause bo
resume bob
agents stop bob
resume bob
agent stop bob
resume bob
review reject 3 --reason 'wrong names'
";

fn rows(table: &str) -> Vec<(&str, &str)> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(" => ").unwrap_or((line, ""))).collect()
}

fn words(line: &str) -> Vec<String> {
    shlex::split(line).expect("a line of a shell")
}

/// Exit code, output, and standard error.
type Ran = (Option<i32>, String, String);

fn run(board: &Board, line: &str) -> Ran {
    let mut command = board.command();
    let ran = board.finish(command.args(words(line)));
    (ran.status.code(), ran.stdout, ran.stderr)
}

/// The line without what it does, if it can be parsed at all.
fn harmless(line: &str) -> String {
    if line.starts_with("help") {
        line.to_owned()
    } else {
        format!("{} --help", line.replace(" -- COMMAND", ""))
    }
}

/// A board with an agent at work on #1, a task that waits for it, one in review, a failed one, and a
/// question.
fn scene() -> Board {
    let board = Board::new();
    let tasks = json!([
        {"description": "The lexer", "title": "The lexer", "path": "P1.M1.T1", "priority": 1, "tags": ["parser"]},
        {"description": "Names", "title": "Names and keywords", "path": "P1.M1.T2", "dependencies": ["#0"]},
        {"description": "Ranges", "title": "Ranges", "path": "P2.M1.T1", "priority": 1, "review": "required"},
        {"description": "Trees", "title": "Trees", "path": "P2.M1.T2", "max_attempts": 1, "priority": 2},
        {"description": "Spans", "title": "Spans", "path": "P2.M1.T3"},
    ]);
    let mut agents = board.mcp();
    for (place, task) in tasks.as_array().expect("a list").iter().enumerate() {
        let mut task = task.clone();
        if task["dependencies"] == json!(["#0"]) {
            task["dependencies"] = json!(["task-a0"]);
        }
        task["id"] = format!("task-a{place}").into();
        agents.ok("create_task", task);
    }
    for agent in ["ada-1", "bob", "claude-1"] {
        agents.register(agent);
    }
    let of = |agent: &str, task: &str| json!({"agent_id": agent, "task_id": task});
    agents.ok("claim_task", of("bob", "task-a2"));
    agents.ok("complete_task", json!({"agent_id": "bob", "task_id": "task-a2", "output": "done"}));
    agents.ok("claim_task", of("bob", "task-a3"));
    agents.ok(
        "fail_task",
        json!({"agent_id": "bob", "task_id": "task-a3", "error": "no", "final": true}),
    );
    agents.ok("claim_task", of("ada-1", "task-a0"));
    agents.ok("ask_human", json!({"agent_id": "ada-1", "question": "Tabs?"}));
    board
}

/// Calls `check` for all rows, several at a time.
fn for_all(rows: &[(&str, &str)], check: impl Fn(&str, &str) -> Result<(), String> + Sync) {
    let check = &check;
    let failed: Vec<String> = thread::scope(|scope| {
        let parts = rows.chunks(rows.len().div_ceil(4));
        let threads: Vec<_> = parts
            .map(|part| {
                scope.spawn(move || {
                    part.iter()
                        .filter_map(|(guess, line)| check(guess, line).err())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), rows.len(), failed.join("\n"));
}

/// The text without what differs from one run to the next.
fn settled(text: &str) -> String {
    let is_of_time = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            || ["s", "s,", "min", "ago", "ago,", "just", "now", "now,", "h"].contains(&word)
    };
    text.split_whitespace().filter(|word| !is_of_time(word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn guesses_that_only_read_do_what_is_meant() {
    let board = scene();
    let rows = rows(SAME);
    let lines: std::collections::BTreeSet<_> = rows.iter().map(|(_, line)| *line).collect();
    let expected: HashMap<&str, Ran> =
        lines.iter().map(|line| (*line, run(&board, line))).collect();
    for (line, (code, _, err)) in &expected {
        assert!(code.is_some_and(|code| code < 2), "{line}: {err}");
    }
    for_all(&rows, |guess, line| {
        let (code, out, err) = run(&board, guess);
        let (of_line, out_of_line, _) = &expected[line];
        let is_same = code == *of_line && settled(&out) == settled(out_of_line);
        is_same.then_some(()).ok_or_else(|| format!("{guess} => {line}: {code:?} {out}{err}"))
    });
}

#[test]
fn guesses_that_are_not_certain_are_answered_with_a_line_that_can_be_copied() {
    let board = scene();
    for_all(&rows(NAMED), |guess, line| {
        let (code, out, err) = run(&board, guess);
        let failed = |why: &str| Err(format!("{guess} => {line}: {why} {code:?} {out}{err}"));
        if code == Some(0) || !err.contains(&format!("`callboard {line}`")) {
            return failed("");
        }
        if err.lines().count() > 2 || err.contains("Usage:") || err.contains("tip:") {
            return failed("too long");
        }
        let named =
            err.split('`').skip(1).step_by(2).filter_map(|part| part.strip_prefix("callboard "));
        for named in named.filter(|named| !guess.starts_with(named)) {
            let destroys = ["cancel", "reset", "purge", "restore", "uninstall", "forget"];
            let does =
                |line: &str| words(line).iter().any(|word| destroys.contains(&word.as_str()));
            let asks = ["rm", "del", "remove", "kill", "canel", "cancel", "terminate", "forget"];
            if does(named)
                && !words(guess).iter().any(|word| asks.iter().any(|ask| word.starts_with(ask)))
            {
                return failed("destroys");
            }
            let (code, out, err) = run(&board, &harmless(named));
            if code != Some(0) {
                return Err(format!("{guess} names {named}: {out}{err}"));
            }
        }
        Ok(())
    });
}

#[test]
fn guesses_that_say_the_same_in_other_words_are_done() {
    let board = scene();
    for (guess, _) in rows(DONE) {
        let (code, out, err) = run(&board, guess);
        assert_eq!(code, Some(0), "{guess}: {out}{err}");
    }
    let of = |task: &str| -> Value {
        serde_json::from_str(&run(&board, &format!("show {task} --json")).1).expect("JSON")
    };
    let edited = &of("2")["task"];
    assert_eq!((&edited["title"], &edited["priority"]), (&json!("Names and keywords"), &json!(4)));
    assert_eq!(edited["description"], "long");
    let added = &of("6")["task"];
    assert_eq!(added["description"], "Write the docs", "words without quotes are one text");
    assert_eq!(of("3")["task"]["status"], "available", "sent back");
}

#[test]
fn commands_that_need_an_argument_say_which_there_are() {
    let board = scene();
    for (line, parts) in [
        ("approve", &["#3 Ranges", "`callboard approve 3`", "`callboard diff 3`"][..]),
        ("reject", &["#3 Ranges", "`callboard reject 3 REASON`"]),
        ("retry", &["#4 Trees", "`callboard retry 4`"]),
        ("answer", &["Q1 from ada-1"]),
        ("stop", &["ada-1", "bob", "`callboard stop AGENT`"]),
        ("export", &["markdown", "csv", "github"]),
    ] {
        let (code, out, err) = run(&board, line);
        assert_eq!(code, Some(0), "{line}: {err}");
        for part in parts {
            assert!((out.clone() + &err).contains(part), "{line}: no {part} in {out}{err}");
        }
    }
}

/// The commands that have commands below them.
fn groups(board: &Board) -> Vec<String> {
    let (_, help, _) = run(board, "--help");
    let (commands, _) = help.split_once("Options of all commands:").expect("options");
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<_> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let has_commands =
        |name: &String| run(board, &format!("{name} --help")).1.contains("\nCommands:\n");
    let groups: Vec<_> = names.into_iter().filter(has_commands).collect();
    for known in ["snapshot", "token", "plan", "agents", "artifact"] {
        assert!(groups.iter().any(|name| name == known), "no {known} in {groups:?}");
    }
    groups
}

#[test]
fn every_group_of_commands_shows_something_when_it_stands_alone() {
    let (board, nothing) = (scene(), Board::new());
    for name in groups(&board) {
        let (code, out, err) = run(&board, &name);
        assert!(code == Some(0) && !out.trim().is_empty(), "{name}: {code:?} {out}{err}");
        assert!(!out.contains("Usage:") && err.is_empty(), "{name}: {out}{err}");
        let (code, json, err) = run(&board, &format!("{name} --json"));
        let is_json = serde_json::from_str::<Value>(&json).is_ok_and(|json| json.is_object());
        assert!(code == Some(0) && is_json, "{name}: {code:?} {json}{err}");
        // Where there is no board, that may be the answer.
        let (code, out, err) = run(&nothing, &name);
        assert!(code != Some(2) && !out.contains("Usage:"), "{name}: {code:?} {out}{err}");
    }
    for name in ["snapshot", "token", "plan", "checkpoint", "bundle", "artifact"] {
        let (_, alone, _) = run(&board, name);
        let (_, listed, _) = run(&board, &format!("{name} list"));
        assert_eq!(alone, listed, "{name}");
    }
}

#[test]
fn groups_alone_list_what_there_is() {
    let board = scene();
    std::fs::write(board.base().join("PLAN.md"), "# P1: One\n\n- [ ] Write the guide\n").unwrap();
    std::fs::write(board.base().join("notes.txt"), "text").unwrap();
    for line in [
        "plan import PLAN.md",
        "snapshot create --label before",
        "token add carl",
        "artifact attach 1 notes.txt",
        "checkpoint save nightly --phase one",
        "bundle save --state-scope s --prompt 'system=Be brief'",
    ] {
        let (code, out, err) = run(&board, line);
        assert_eq!(code, Some(0), "{line}: {out}{err}");
    }
    for (line, parts) in [
        ("plan", &["PLAN.md", "callboard plan export`"][..]),
        ("snapshot", &["before"]),
        ("token", &["carl"]),
        ("artifact", &["notes.txt", "The lexer"]),
        ("checkpoint", &["nightly"]),
        ("bundle", &["BUNDLE"]),
        ("hook", &["session-start", "connect CLIENT --hooks`"]),
    ] {
        let (code, out, err) = run(&board, line);
        assert!(code == Some(0) && !out.starts_with("no "), "{line}: {out}{err}");
        parts.iter().for_each(|part| assert!(out.contains(part), "{line}: no {part} in {out}"));
    }
    assert_eq!(run(&board, "plan --json").1, run(&board, "plan list --json").1);
    let kept: Value = serde_json::from_str(&run(&board, "artifact --json").1).expect("JSON");
    assert_eq!(kept["artifacts"][0]["task_id"], "task-a0");
}

#[test]
fn numbers_and_filters_that_mean_something_else_are_answered_with_the_line() {
    let board = scene();
    for (line, code, parts) in [
        ("undo 1", 1, &["1 is an event and a task", "#1 The lexer", "undo '#1'"][..]),
        ("undo 9999", 1, &["event 9999 is not in the past"]),
        ("restore 3", 2, &["`callboard snapshot restore --seq 3`", "`callboard retry 3`"]),
        ("restore '#3'", 2, &["`callboard log 3`"]),
        ("restore gone.backup", 2, &["cannot read gone.backup"]),
        ("tasks --agent ada-1", 0, &["`callboard tasks --of ada-1`"]),
        ("history --agent=bob", 0, &["`callboard history --of bob`"]),
    ] {
        let (ended, out, err) = run(&board, line);
        assert_eq!(ended, Some(code), "{line}: {out}{err}");
        parts.iter().for_each(|part| assert!(err.contains(part), "{line}: no {part} in {err}"));
    }
    for line in ["tasks --of ada-1", "--agent ada-1 tasks", "tasks --agent ada-1 --json"] {
        assert_eq!(run(&board, line).2, "", "{line}");
    }
}

#[test]
fn several_tasks_are_taken_at_once() {
    let board = scene();
    let (code, out, _) = run(&board, "show 1 2");
    assert!(
        code == Some(0) && out.contains("The lexer") && out.contains("Names and keywords"),
        "{out}"
    );
    let (code, out, _) = run(&board, "log 1 ada-1");
    assert!(code == Some(0) && out.contains("claimed"), "{out}");
    let (code, out, err) = run(&board, "edit 2,5 --tag late");
    assert_eq!(code, Some(0), "{out}{err}");
    let (_, out, _) = run(&board, "tasks --tag late");
    assert!(out.contains("#2") && out.contains("#5"), "{out}");
    let (code, out, err) = run(&board, "cancel 2,5");
    assert_eq!(code, Some(0), "{out}{err}");
    let (_, out, _) = run(&board, "tasks --cancelled");
    assert!(out.contains("#2") && out.contains("#5"), "{out}");
    let (code, out, err) = run(&board, "release 1 2");
    assert!(code == Some(1), "all or none: {out}{err}");
}

#[test]
fn names_that_may_be_several_are_listed_and_none_is_taken() {
    let board = scene();
    board.mcp().register("claude-2");
    let (code, _, err) = run(&board, "stop claude");
    assert!(code == Some(1) && err.contains("claude-1") && err.contains("claude-2"), "{err}");
    run(&board, "add 'More keywords' --title 'More keywords'");
    let (code, _, err) = run(&board, "show keywords");
    assert!(code == Some(1) && err.contains("#2") && err.contains("#6"), "{err}");
    let (code, _, err) = run(&board, "cancel ranges-of");
    assert_eq!(code, Some(1), "{err}");
    // What takes something away takes no word of a title.
    for line in
        ["cancel names-keywords", "edit names-keywords --priority 1", "retry names-keywords"]
    {
        let (code, _, err) = run(&board, line);
        assert!(code == Some(1) && err.contains("#2 Names and keywords"), "{line}: {err}");
    }
}

#[test]
fn lists_say_that_there_is_no_board_and_what_makes_one() {
    let board = Board::new();
    for line in ["tasks", "agents", "log", "tree", "history", "undo", "results", "task list"] {
        let (code, out, err) = run(&board, line);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{line}: {err}");
        assert!(err.contains("no board here") && err.contains("init GOAL`"), "{line}: {err}");
    }
}
