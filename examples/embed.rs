//! A program that takes part in a board: it registers, claims what is ready and completes it,
//! beside any other process on the board, such as the `callboard mcp` of an editor.
//!
//! Run it in a project with `cargo run --example embed`, after `callboard add "Say hello"`.

use callboard::board::Options;
use callboard::ops::{ClaimTask, CompleteTask, RegisterAgent, claim_task, complete_task};
use callboard::{Board, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let board = Options::here().agent("embedded").open()?;
    let done = work(&board).await?;
    println!("{done} tasks are done; {} shows it", board.state_file().display());
    Ok(())
}

/// Does all that is ready, and returns how many tasks that were.
pub(crate) async fn work(board: &Board) -> Result<usize, Error> {
    board.call::<RegisterAgent>(Default::default()).await?;
    let mut done = 0;
    loop {
        let claim = board.call::<ClaimTask>(Default::default()).await?;
        let claim_task::Reply::Claimed(claimed) = claim.reply else { return Ok(done) };
        println!("{}: {}", claimed.task.id, claimed.task.description);
        let (task_id, output) =
            (claimed.task.id.to_string(), "said so on standard output".to_owned());
        board
            .call::<CompleteTask>(complete_task::Params { task_id, output, ..Default::default() })
            .await?;
        done += 1;
    }
}
