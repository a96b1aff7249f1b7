//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Find, Step};
use super::form::{Done, Form};
use super::place::Place;
use super::screen::{Over, Screen, Wish};
use super::subject::Subject;
use crate::view::Tone;

impl Screen {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Wish> {
        self.notice = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Some(Wish::Quit);
        }
        match std::mem::replace(&mut self.over, Over::Nothing) {
            Over::Nothing => self.key_of_view(key),
            // Any key closes it.
            Over::Help => None,
            Over::Filter => self.key_of_filter(key),
            Over::Ask(ask) => {
                let KeyCode::Char(typed) = key.code else { return None };
                let chosen = ask.choices.into_iter().find(|(letter, ..)| *letter == typed);
                chosen.map(|(_, _, act)| self.act(act, None))
            }
            Over::Form(form) => self.key_of_form(form, key),
            // A key that was typed ahead must not be taken for an answer.
            Over::Undo => {
                if key.code != KeyCode::Esc {
                    self.over = Over::Undo;
                }
                None
            }
        }
    }

    /// Text from a clipboard is never taken for keys.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.over {
            Over::Form(form) => form.paste(text),
            Over::Filter => {
                let line = text.lines().next().unwrap_or_default();
                let filter = format!("{}{line}", self.here().filter);
                self.here_mut().set_filter(filter);
            }
            _ => {}
        }
    }

    fn key_of_view(&mut self, key: KeyEvent) -> Option<Wish> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let page = isize::try_from(self.size.1.saturating_sub(4).max(1)).unwrap_or(1);
        match key.code {
            KeyCode::Down | KeyCode::Char('j') => self.here_mut().step(1),
            KeyCode::Up | KeyCode::Char('k') => self.here_mut().step(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.here_mut().step(page),
            KeyCode::PageUp => self.here_mut().step(-page),
            KeyCode::Home | KeyCode::Char('g') => self.here_mut().jump(false),
            KeyCode::End | KeyCode::Char('G') => self.here_mut().jump(true),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => return self.open(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Char('h') => return self.back(),
            KeyCode::Char('/') => {
                self.here_mut().set_filter(String::new());
                self.over = Over::Filter;
            }
            KeyCode::Char('?') => self.over = Over::Help,
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('M') => return Some(self.switch_mouse()),
            KeyCode::Char(letter) => {
                return match Place::of_digit(letter) {
                    Some(place) => self.go(place),
                    None => self.letter(letter),
                };
            }
            _ => {}
        }
        None
    }

    fn letter(&mut self, letter: char) -> Option<Wish> {
        // The key of + without Shift.
        let letter = if letter == '=' { '+' } else { letter };
        let mut of_key = Action::ALL.into_iter().filter(|action| action.key() == letter).peekable();
        let word = of_key.peek()?.word();
        let about = self.subject().cloned();
        let action = of_key.find(|action| self.fits(*action));
        match action.and_then(|action| action.step(about.as_ref())) {
            Some(Step::Act(act)) => {
                let wish = self.act(act, None);
                if let (Some(action), Some(Subject::Task(task))) = (action, &about) {
                    let priority = action.new_priority(task);
                    priority.into_iter().for_each(|wanted| self.count_on(&task.id, wanted));
                }
                return Some(wish);
            }
            Some(Step::Ask(ask)) => self.over = Over::Ask(ask),
            Some(Step::Form(form)) => return self.open_form(form),
            Some(Step::Open(place)) => return self.enter(place),
            Some(Step::Undo) => {
                self.over = Over::Undo;
                return Some(Wish::Find(Find::Undoable(self.here().event())));
            }
            None => {
                self.notice = Some((
                    Tone::Busy,
                    format!("{letter} ({word}) is not for this; ? has all keys"),
                ));
            }
        }
        None
    }

    fn key_of_filter(&mut self, key: KeyEvent) -> Option<Wish> {
        let mut filter = self.here().filter.clone();
        match key.code {
            KeyCode::Enter => return None,
            KeyCode::Esc => {
                self.here_mut().set_filter(String::new());
                return None;
            }
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Char(typed) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                filter.push(typed);
            }
            _ => {}
        }
        if filter != self.here().filter {
            self.here_mut().set_filter(filter);
        }
        self.over = Over::Filter;
        None
    }

    fn key_of_form(&mut self, mut form: Box<Form>, key: KeyEvent) -> Option<Wish> {
        let is_plain = !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => {
                self.drafts.keep(form.draft());
                return None;
            }
            KeyCode::Char('u') if is_control => form.clear(),
            KeyCode::Enter if is_plain => {
                return match form.done() {
                    Some(Done::Form(next)) => {
                        self.drafts.remove(&form.topic());
                        self.open_form(next)
                    }
                    Some(Done::Act(act)) => {
                        let draft = form.draft();
                        self.drafts.remove(&draft.topic);
                        Some(self.act(act, Some(draft)))
                    }
                    None => {
                        self.notice =
                            Some((Tone::Busy, "type a text first; Esc leaves".to_owned()));
                        self.over = Over::Form(form);
                        None
                    }
                };
            }
            // Terminals send Ctrl-J, or Alt and Enter, for a line break.
            KeyCode::Char('j') if is_control => new_line(&mut form),
            KeyCode::Enter => new_line(&mut form),
            KeyCode::Down | KeyCode::Tab if form.choice.is_some() => form.step(true),
            KeyCode::Up | KeyCode::BackTab if form.choice.is_some() => form.step(false),
            _ => form.input(key),
        }
        self.over = Over::Form(form);
        None
    }
}

fn new_line(form: &mut Form) {
    if form.is_tall() {
        form.area.insert_newline();
    }
}
