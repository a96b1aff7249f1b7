#!/bin/sh
# A shell pipeline whose steps survive anything: each is a task, `callboard work` runs them in order, two at a time where
# the dependencies allow it. Interrupt it, kill it, switch the machine off; the same command goes on where it was.
#
#     examples/work/pipeline.sh [DIRECTORY]
set -eu
directory=${1:-.}
cd "$directory"
workflow=pipeline

# One key for the batch: a second run adds nothing.
cat <<'END' | callboard add --batch - --key "$workflow" >/dev/null
[
  {"id": "fetch", "description": "mkdir -p out && printf 'banana\\napple\\ncherry\\napple\\n' > out/words", "max_attempts": 3},
  {"id": "sort", "description": "sort out/words > out/sorted", "dependencies": ["fetch"]},
  {"id": "count", "description": "sort out/words | uniq -c > out/counts", "dependencies": ["fetch"]},
  {"id": "report", "description": "cat out/sorted out/counts > out/report", "dependencies": ["sort", "count"]}
]
END

continue=""
if callboard checkpoint show "$workflow" >/dev/null 2>&1; then continue=--continue; fi
# Each task's description is its command; a shell runs it because this line says so.
exec callboard work --agents 2 --workflow "$workflow" $continue --retries 2 \
    -- sh -c 'eval "$CALLBOARD_TASK_DESCRIPTION"'
