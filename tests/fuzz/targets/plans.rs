//! Whatever plan somebody hands in: it is understood or refused with lines that it has, and what is exported of it is the
//! same plan when it is imported.
#![no_main]

use callboard::state::event::Event;
use callboard::state::id::ParticipantId;
use callboard::state::plan::{Given, Plan, Problem};
use callboard::state::time::Timestamp;
use callboard::state::{Envelope, State};
use callboard::{harmless, plan};
use libfuzzer_sys::fuzz_target;

/// The event that imports the plan without a file.
fn replanned(state: &State, plan: &Plan) -> Result<Event, Vec<Problem>> {
    let import = state.import_of(plan, &Given::default()).expect("one plan without a name");
    state.replan(plan, &import)
}

fuzz_target!(|input: &str| {
    let input = harmless::text(input).unwrap_or_else(|| input.to_owned());
    let lines = input.split('\n').count() + 1;
    let plan = match plan::parse(&input) {
        Ok(plan) => plan,
        Err(problems) => {
            assert!(
                !problems.is_empty() && problems.iter().all(|one| (1..=lines).contains(&one.line)),
                "{problems:?}"
            );
            return;
        }
    };
    assert!(
        plan.items
            .iter()
            .enumerate()
            .all(|(at, item)| item.parent.is_none_or(|parent| parent < at))
    );
    let envelope = Envelope {
        at: Timestamp::default(),
        participant: ParticipantId::trusted("p-1"),
        actor: None,
        idempotency: None,
    };
    let mut state = State::new();
    state
        .record(Event::BoardCreated { board_id: "b".to_owned(), numbered: true }, &envelope)
        .unwrap();
    let Ok(imported) = replanned(&state, &plan) else { return };
    state.record(imported, &envelope).unwrap();
    state.settle();
    assert_eq!(state.check(), Vec::<String>::new());
    let tasks = state.in_file_order(state.tasks());
    let title = plan.title.as_deref();
    let exported = [
        plan::to_markdown(title, None, &tasks),
        serde_json::to_string(&plan::to_json(title, &tasks)).unwrap(),
    ];
    for text in exported {
        let again = plan::parse(&text).unwrap_or_else(|problems| panic!("{problems:?} in {text}"));
        match replanned(&state, &again) {
            Ok(Event::PlanImported { created, changed, removed, .. }) => {
                assert!(
                    created.is_empty() && changed.is_empty() && removed.is_empty(),
                    "{changed:?} by {text}"
                );
            }
            other => panic!("{other:?} by {text}"),
        }
    }
});
