#!/usr/bin/env bash
# Makes the files in tests/data/exchange anew with the tools themselves. Needs npm and git.
# usage: tests/exchange-files.sh [DIRECTORY OF node_modules/.bin]
set -euo pipefail
cd "$(dirname "$0")/data/exchange"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ $# -gt 0 ]]; then
    PATH=$1:$PATH
else
    npm install --silent --no-audit --no-fund --prefix "$work/npm" backlog.md@1.52.0 task-master-ai
    PATH=$work/npm/node_modules/.bin:$PATH
fi
data=$PWD
mkdir "$work/project"
cd "$work/project"
git init -q .
backlog init demo --defaults --integration-mode none >"$work/log"
backlog config set remoteOperations false >"$work/log"
create() { backlog task create "$@" --plain >"$work/log"; }
create "Set up & configure: the [repo]" -d $'First line\nsecond line' --ac "it builds" --ac "tests pass" -l infra,ci \
    --priority high -a @sara -s Done --final-summary "It is all set up"
create "Write the parser" -d "Parse files" --dep task-1 --priority medium -s "In Progress" -a @bob \
    --plan $'1. lexer\n2. grammar' --notes started --ref https://example.com/spec --modified-file src/parser.rs
create Lexer -p task-2 --dep task-1 --dod documented
create Grammar -p task-2 --dep task-2.1 -d rules
create "Ship it (after the parser)" --dep task-2,task-1 --priority low --ordinal 5000
create "An idea" --draft
create "Old thing"
for i in $(seq 1 16); do
    create "Task number $i" -d "What $i is about" --dep "task-$((i % 3 + 1))" -l batch
done
backlog task archive 6 >"$work/log"
backlog milestone add "First release" >"$work/log"
backlog task edit 5 -m "First release" >"$work/log"
backlog task edit 1 --check-ac 1 >"$work/log"
backlog task edit 2 --append-notes more >"$work/log"
rm -rf "$data/backlog"
cp -r backlog "$data/backlog"

task-master init -y --no-git --rules cursor >"$work/log" </dev/null
tasks=.taskmaster/tasks/tasks.json
echo '{"master": {"tasks": [], "metadata": {"description": "Tasks"}}}' >"$tasks"
add() { task-master "$@" >"$work/log" </dev/null; }
add add-task --title="Set up the repository" --description="Make it" --details=$'git init\nand push' --priority=high
add add-task --title="Write the parser" --description="Parse files" --priority=medium --dependencies=1
add add-subtask --parent=2 --title=Lexer --description=tokens
add add-subtask --parent=2 --title=Grammar --description=rules --dependencies=2.1
for i in $(seq 3 18); do
    add add-task --title="Task number $i" --description="What $i is about" --details="Do it" \
        --dependencies=$((i % 2 + 1)) --priority=low
done
for one in 1=done 2.1=done 3=deferred 4=in-progress 5=review 6=cancelled 7=blocked; do
    add set-status --id="${one%=*}" --status="${one#*=}"
done
add add-tag ui --description="The pages"
add use-tag ui
add add-task --title=Page --description="A page" --details=html
cp "$tasks" "$data/task-master.json"
