use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, Command};
use clap_complete::Shell;

use super::Outcome;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Shell to print the script for
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    // The generator panics when its output is closed, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut visible(super::whole()),
        "callboard",
        &mut script,
    );
    script.extend_from_slice(names(arguments.shell).as_bytes());
    io::stdout().lock().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// What a script has behind the generated part: it asks callboard which tasks and agents there are.
fn names(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        _ => "",
    }
}

/// A candidate that is the only one is inserted, without what stands beside it.
const BASH: &str = r#"
_callboard_names() {
    _callboard "$@"
    local line found=()
    while IFS= read -r line; do
        [[ -n $line ]] && found+=("$line")
    done < <(callboard __complete bash "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    if [[ ${#found[@]} -eq 1 ]]; then
        COMPREPLY=("${found[0]%%$'\t'*}")
    elif [[ ${#found[@]} -gt 1 ]]; then
        COMPREPLY=("${found[@]/$'\t'/  }")
    fi
}
complete -F _callboard_names -o nosort -o bashdefault -o default callboard
"#;

const ZSH: &str = r#"
_callboard_names() {
    local -a found
    found=("${(@f)$(callboard __complete zsh "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    if [[ -n ${found[1]} ]]; then
        _describe -V 'tasks and agents' found
    else
        _callboard "$@"
    fi
}
compdef _callboard_names callboard
"#;

const FISH: &str = r#"
complete -c callboard -k -a "(callboard __complete fish (commandline -opc) (commandline -ct) 2>/dev/null)"
"#;

/// The command without what its help does not show, which the generator would offer.
fn visible(mut command: Command) -> Command {
    // So that each command has the options that are given for all.
    command.build();
    rebuilt(&command)
}

fn rebuilt(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|one| !one.is_hide_set()).map(bare);
    let commands = command.get_subcommands().filter(|one| !one.is_hide_set()).map(rebuilt);
    Command::new(command.get_name().to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args(arguments)
        .subcommands(commands)
}

/// The argument without what ties it to others, which may not be there.
fn bare(argument: &Arg) -> Arg {
    let mut bare = Arg::new(argument.get_id().clone())
        .short(argument.get_short())
        .help(argument.get_help().cloned().unwrap_or_default())
        .action(argument.get_action().clone())
        .value_parser(argument.get_value_parser().clone())
        .value_hint(argument.get_value_hint());
    if let Some(long) = argument.get_long() {
        bare = bare.long(long.to_owned());
    }
    if let Some(names) = argument.get_value_names() {
        bare = bare.value_names(names);
    }
    if let Some(number) = argument.get_num_args() {
        bare = bare.num_args(number);
    }
    match argument.get_index() {
        Some(index) => bare.index(index).last(argument.is_last_set()),
        None => bare,
    }
}
