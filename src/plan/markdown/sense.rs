//! What a heading, or a line before a list, says of the entries below it.

use super::super::counted::counted;
use super::entry::is_tick;
use crate::state::plan::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// It counts or names work: plain lists are work.
    Work,
    /// Plain lists are done.
    Done,
    /// Plain lists are no work.
    Prose,
    /// Signs make no work either, only boxes do.
    Aside,
}

impl Sense {
    pub(super) fn is_no_work(self) -> bool {
        matches!(self, Self::Prose | Self::Aside)
    }
}

const PROSE: [&str; 33] = [
    "about",
    "background",
    "changelog",
    "context",
    "dependencies",
    "description",
    "format",
    "glossary",
    "history",
    "implementation strategy",
    "intro",
    "introduction",
    "key decisions",
    "links",
    "motivation",
    "open questions",
    "overview",
    "questions",
    "rationale",
    "remarks",
    "resources",
    "risks",
    "scope",
    "status",
    "strategy",
    "table of contents",
    "terms",
    "toc",
    "decisions",
    "definitions",
    "warning",
    "warnings",
    "files",
];

const ASIDE: [&str; 28] = [
    "acceptance criteria",
    "assumptions",
    "cons",
    "constraints",
    "conventions",
    "definition of done",
    "goal",
    "goals",
    "legend",
    "non goals",
    "non-goals",
    "nongoals",
    "note",
    "notes",
    "out of scope",
    "principles",
    "pros",
    "reference",
    "references",
    "rule",
    "rules",
    "stack",
    "success criteria",
    "success metrics",
    "tech",
    "tech stack",
    "technology stack",
    "technologies",
];

/// Words that name work, in some languages.
const WORK: [&str; 52] = [
    "phase",
    "phases",
    "step",
    "steps",
    "milestone",
    "milestones",
    "stage",
    "stages",
    "sprint",
    "sprints",
    "week",
    "weeks",
    "day",
    "task",
    "tasks",
    "subtasks",
    "todo",
    "todos",
    "to-do",
    "to-dos",
    "backlog",
    "next",
    "plan",
    "plans",
    "roadmap",
    "implementation",
    "work",
    "doing",
    "upcoming",
    "remaining",
    "pending",
    "planned",
    "schritt",
    "schritte",
    "aufgabe",
    "aufgaben",
    "meilenstein",
    "meilensteine",
    "woche",
    "offen",
    "étape",
    "étapes",
    "tâche",
    "tâches",
    "semaine",
    "jalon",
    "tarea",
    "tareas",
    "paso",
    "pasos",
    "semana",
    "pendiente",
];
const WORK_PHRASES: [&str; 3] = ["to do", "in progress", "à faire"];

/// Last words of headings below which signs sum up what others are.
const SUMMED_UP: [&str; 5] = ["criteria", "dashboard", "legend", "metrics", "summary"];

/// Last words of headings that are about work, and do not name it.
const ABOUT: [&str; 20] = [
    "considerations",
    "dependencies",
    "description",
    "details",
    "format",
    "guide",
    "guidelines",
    "history",
    "log",
    "note",
    "notes",
    "overview",
    "outcomes",
    "prerequisites",
    "rationale",
    "requirements",
    "risks",
    "strategy",
    "structure",
    "template",
];

const DONE: [&str; 10] = [
    "done",
    "complete",
    "completed",
    "finished",
    "shipped",
    "erledigt",
    "fertig",
    "terminé",
    "fait",
    "hecho",
];
/// Words that may stand beside those.
const BESIDE_DONE: [&str; 8] =
    ["already", "recently", "previously", "features", "items", "and", "in", "work"];

/// Whether the heading says itself that it is done, as `Phase 1 ✅` and `Phase 1 (done)`.
pub(super) fn is_ticked(title: &str) -> bool {
    let end = title.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once('('));
    title.contains(is_tick) || end.is_some_and(|(_, end)| DONE.contains(&words(end).as_str()))
}

/// What the heading says, if it says anything of what is below it.
pub(super) fn sense(title: &str) -> Option<Sense> {
    match said(title) {
        Some(said) if said.is_no_work() => Some(said),
        said => {
            if is_ticked(title) {
                Some(Sense::Done)
            } else {
                said
            }
        }
    }
}

/// Whether the heading is about the work that it stands below.
pub(super) fn is_about(title: &str) -> bool {
    let title = words(title);
    let last = title.trim_matches(|c: char| !c.is_alphanumeric()).rsplit(' ').next();
    last.is_some_and(|last| ABOUT.contains(&last))
}

/// The same, whatever it is ticked with.
pub(super) fn said(title: &str) -> Option<Sense> {
    let whole = words(title);
    let text = whole.trim_matches(|c: char| !c.is_alphanumeric());
    let first = text.split([':', '(', ',', '&']).next().unwrap_or_default().trim();
    let unnumbered = first.trim_start_matches(|c: char| !c.is_alphabetic());
    let is_of = |list: &[&str], text: &str| list.contains(&text);
    let all_of = |lists: &[&[&str]]| {
        unnumbered.split(" and ").all(|part| lists.iter().any(|list| is_of(list, part.trim())))
    };
    let single: Vec<&str> = unnumbered.split_whitespace().collect();
    let is_done = single.iter().any(|word| is_of(&DONE, word))
        && single.iter().all(|word| {
            [&DONE[..], &WORK, &BESIDE_DONE].iter().any(|list| is_of(list, word))
                || word.bytes().all(|byte| !byte.is_ascii_alphabetic())
        });
    let names_work = single.iter().any(|word| is_of(&WORK, word))
        || WORK_PHRASES.iter().any(|phrase| unnumbered.contains(phrase));
    let is_last = |list: &[&str]| single.last().is_some_and(|word| is_of(list, word));
    match () {
        () if all_of(&[&ASIDE]) || is_last(&SUMMED_UP) => Some(Sense::Aside),
        () if all_of(&[&ASIDE, &PROSE]) => Some(Sense::Prose),
        () if is_done => Some(Sense::Done),
        () if counted(title).is_some() => Some(Sense::Work),
        () if names_work && !is_last(&ABOUT) => Some(Sense::Work),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_say_what_stands_below_them() {
        for (expected, titles) in [
            (
                Some(Sense::Work),
                &[
                    "Phase 2: Notes",
                    "Next steps",
                    "TODO",
                    "To do",
                    "Week 3",
                    "🚧 In progress",
                    "Implementation plan",
                    "Backlog (later)",
                    "Aufgaben",
                    "Sprint 4",
                    "Plans:",
                ][..],
            ),
            (
                Some(Sense::Done),
                &[
                    "Done",
                    "✅ Completed",
                    "Completed tasks",
                    "Recently shipped",
                    "Done in 2024:",
                    "Phase 1 ✅ — Cellar",
                    "Phase 2: Walls (done)",
                ],
            ),
            (
                Some(Sense::Aside),
                &["Notes", "3. Success criteria", "**Goals**", "Pros", "Non-goals:"],
            ),
            (Some(Sense::Prose), &["Overview", "Risks and notes", "Status", "Open questions"]),
            (
                None,
                &[
                    "Parser",
                    "Implementation notes",
                    "Not done",
                    "To be done",
                    "Phase details",
                    "Frontend",
                    "",
                ],
            ),
        ] {
            for title in titles {
                assert_eq!(sense(title), expected, "{title}");
            }
        }
    }
}
