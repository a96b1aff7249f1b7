//! The neighbours of the commit path: parked calls, the feed, hand edits and upkeep.

use std::collections::VecDeque;

use super::Writer;
use crate::participant::commit::Action;
use crate::participant::error::{BoardError, CallError};
use crate::participant::message::{Answers, Queued, answer_one, waited};
use crate::participant::options::Stay;
use crate::participant::waiting::{Parked, Sight};
use crate::state::id::AgentId;
use crate::state::limit;
use crate::state::refusal::Refusal;

/// Most parked calls that are tried in one turn.
const WOKEN: usize = 64;

impl Writer {
    /// Does what the commit path leaves to its neighbours.
    pub(super) fn receive(&mut self, news: VecDeque<Action>) {
        for action in news {
            match action {
                Action::Committed { calls, parked } => {
                    self.metrics.committed(calls);
                    parked.into_iter().for_each(|call| self.park(call));
                }
                Action::Publish { events, seq } => {
                    self.metrics.happened(&events);
                    self.feed.publish(events, seq);
                }
                Action::Conclude(examined, verdict) => {
                    if let Some(board) = &self.board {
                        let now = self.attendance.now(&board.state);
                        self.edits.conclude(&examined, &verdict, board.dir(), now);
                    }
                }
                Action::Reply(answers) => self.reply(answers),
                _ => {}
            }
        }
    }

    fn reply(&mut self, answers: Answers) {
        // A process that ends with its answer must look for hand edits and do its upkeep first; in
        // any other nobody waits for that.
        if self.driver.stay == Stay::Brief {
            if self.driver.commit.failed_at().is_none() {
                self.settle_edits();
            }
            self.keep_up();
        }
        for (reply, answer) in answers {
            answer_one(reply, answer);
        }
        if self.driver.stay != Stay::Brief {
            self.keep_up();
        }
    }

    fn keep_up(&mut self) {
        if let Some(board) = &self.board {
            self.upkeep.look(board, self.attendance.now(&board.state), self.driver.stay);
        }
    }

    pub(super) fn park(&mut self, call: Queued) {
        if self.waiting.len() >= limit::WAITING.max {
            let error = BoardError::Overloaded { waiting: self.waiting.len() };
            return answer_one(call.reply, Err(error.into()));
        }
        let until = call.entered + waited(&call);
        self.waiting.park(call, until).into_iter().for_each(supersede);
    }

    /// Wakes parked calls whose time is up or whose answer has changed. At most one batch at a
    /// time, because others call, too, and no more than there are ready tasks, because the rest
    /// would only wait again.
    pub(super) fn unpark(&mut self) {
        for parked in self.waiting.due() {
            self.wake(parked);
        }
        let is_hurried = self.driver.is_hurried;
        self.waiting.see(self.board.as_ref().map(|board| Sight::of(&board.state, is_hurried)));
        let ready = self
            .board
            .as_ref()
            .map_or(0, |board| board.state.ready_count() + board.state.runs().pending());
        let mut room = if ready == 0 { WOKEN } else { ready.min(WOKEN) };
        while room > 0 {
            let Some(parked) = self.waiting.next_unsettled() else { return };
            if parked.call.reply.is_closed() {
                continue;
            }
            if self.would_wait(&parked.call) {
                self.waiting.settle(parked);
            } else {
                self.wake(parked);
                room -= 1;
            }
        }
    }

    fn wake(&mut self, parked: Parked) {
        if parked.call.prepared.annotations().read_only {
            self.read(parked.call, false);
        } else {
            self.record(parked.call);
        }
    }

    pub(super) fn would_wait(&mut self, call: &Queued) -> bool {
        self.with_view(|driver, view| driver.would_wait(call, view))
    }
}

fn supersede(parked: Parked) {
    let agent = AgentId::trusted(parked.call.prepared.agent_id().unwrap_or("of this process"));
    answer_one(parked.call.reply, Err(CallError::Refused(Refusal::Superseded { agent })));
}
