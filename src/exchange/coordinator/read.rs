use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::OF_CONTEXT;
use super::tree::Flat;
use crate::exchange::json::Json;
use crate::exchange::record::Record;
use crate::exchange::report::{Fault, Report};
use crate::exchange::status;
use crate::plan::Node;
use crate::state::agent::Demands;
use crate::state::brought::Tried;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::plan::{Stated, one_line, shortened};
use crate::state::task::{AttemptError, Outcome, Source, TaskResult};
use crate::state::time::{MINUTE, SECOND, Timestamp};

/// Reads the tasks of one file.
pub(crate) struct Reading<'a> {
    pub format: &'static str,
    /// Path of the file, as the board keeps paths.
    pub source: Option<String>,
    pub json: Json<'a>,
    pub report: Report,
}

impl<'a> Reading<'a> {
    pub(crate) fn tasks(&mut self, tasks: &[&'a RawValue]) -> Result<Vec<Flat>, Vec<Fault>> {
        let mut flat = Vec::with_capacity(tasks.len());
        let mut faults = Vec::new();
        for raw in tasks {
            match self.json.record(raw).and_then(|record| self.task(record)) {
                Ok(one) => flat.push(one),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(flat) } else { Err(faults) }
    }

    fn task(&mut self, mut record: Record) -> Result<Flat, Fault> {
        let id = record.needed("id")?;
        let description = record.needed("description")?;
        let first = one_line(description.trim().lines().next().unwrap_or_default());
        let title = record.text("title")?.unwrap_or_else(|| shortened(&first, limit::TITLE.max));
        let mut node = Node {
            description: Some(description).filter(|text| *text != title),
            title,
            source: Some(Source {
                format: self.format.to_owned(),
                id: id.clone(),
                path: self.source.clone(),
            }),
            line: record.line,
            depends: record.texts("dependencies")?,
            tags: record.texts("tags")?,
            ..Node::default()
        };
        node.of_task.task_id = TaskId::checked(&id).is_ok().then_some(id);
        node.priority = self.priority(&mut record)?;
        node.estimated_minutes = minutes(&mut record, "estimated_duration")?;
        // It follows from the times.
        record.take("actual_duration");
        if record.take("blocks").is_some() {
            self.report.left_out("blocks (follows from the dependencies)");
        }
        self.context(&mut record, &mut node)?;
        let parent = record.text("parent_id")?;
        self.trials(&mut record, &mut node)?;
        self.past(&mut record, &mut node)?;
        let group = record.take(super::GROUP);
        record.rest(&mut node, &mut self.report);
        node.metadata.extend(group.map(|group| (super::GROUP.to_owned(), group)));
        Ok(Flat { node, parent })
    }

    fn priority(&mut self, record: &mut Record) -> Result<Option<u8>, Fault> {
        let Some(value) = record.take("priority") else { return Ok(None) };
        let given = value
            .as_f64()
            .ok_or_else(|| record.fault(format!("priority is {value}: it has to be a number")))?;
        let priority = given.round().clamp(1.0, 10.0);
        if priority != given {
            self.report.note(
                &record.path,
                record.line,
                format!("priority {given} is read as {priority}"),
            );
        }
        Ok(Some(priority as u8))
    }

    fn context(&mut self, record: &mut Record, node: &mut Node) -> Result<(), Fault> {
        let Some(value) = record.take("context") else { return Ok(()) };
        let Value::Object(fields) = value else {
            return Err(record.fault("context has to be an object"));
        };
        let mut context = Record::new(&record.path, record.line, fields);
        node.files = context.texts("files")?;
        node.hints = context.text("hints")?;
        let tags = context.texts("tags")?;
        node.tags
            .extend(tags.into_iter().filter(|tag| !node.tags.contains(tag)).collect::<Vec<_>>());
        if let Some(Value::Object(metadata)) = context.take("metadata") {
            node.metadata.extend(metadata);
        }
        let mut rest = Node::default();
        context.rest(&mut rest, &mut self.report);
        node.metadata.extend(
            rest.metadata.into_iter().map(|(name, value)| (format!("{OF_CONTEXT}{name}"), value)),
        );
        Ok(())
    }

    fn trials(&mut self, record: &mut Record, node: &mut Node) -> Result<(), Fault> {
        let of_task = &mut node.of_task;
        let retries = whole(record, "max_retries")?;
        of_task.max_attempts = whole(record, "max_attempts")?
            .or(retries.map(|most| most + 1))
            .filter(|most| *most > 0);
        let seconds = whole(record, "timeout_seconds")?;
        let minutes =
            minutes(record, "timeout_minutes")?.map(|minutes| minutes * (MINUTE / SECOND) as u32);
        of_task.timeout_seconds = seconds.or(minutes).filter(|seconds| *seconds > 0);
        let capabilities = labels(record, "required_capabilities")?;
        if !capabilities.is_empty() {
            let demands =
                Demands { capabilities: capabilities.into_iter().collect(), ..Demands::default() };
            of_task.demands = Some(demands);
        }
        Ok(())
    }

    fn past(&mut self, record: &mut Record, node: &mut Node) -> Result<(), Fault> {
        let word = record.text("status")?.unwrap_or_else(|| "available".to_owned());
        let holder = record.text("claimed_by")?;
        let by = holder
            .as_deref()
            .map(AgentId::checked)
            .transpose()
            .map_err(|error| record.fault(error.to_string()))?;
        let retries = whole(record, "retry_count")?;
        let attempts = whole(record, "attempts")?;
        let result = self.result(record)?;
        let data = result.as_ref().and_then(|result| result.data.as_ref());
        let is_off = data.is_some_and(|data| data["cancelled"] == true);
        let word = if word == "failed" && is_off { "cancelled".to_owned() } else { word };
        let past = &mut node.of_task.past;
        past.created_at = time(record, "created_at")?;
        past.claimed_at = time(record, "claimed_at")?;
        past.started_at = time(record, "started_at")?;
        past.completed_at = time(record, "completed_at")?;
        past.not_before = time(record, "next_retry_at")?;
        let stated = status::stated(&word);
        let was_held = matches!(word.as_str(), "claimed" | "in_progress");
        let is_over = stated != Stated::Open;
        let was_tried = by.is_some() && (is_over || was_held);
        past.attempt = attempts.unwrap_or(retries.unwrap_or_default() + u32::from(was_tried));
        past.attempt = past.attempt.max(u32::from(was_tried));
        past.uncounted = u32::from(was_held && was_tried);
        if let Some(agent) = by.clone().filter(|_| was_tried) {
            let message = result.as_ref().and_then(|result| result.error.clone());
            past.attempts.push(Tried {
                number: past.attempt,
                agent,
                claimed_at: past.claimed_at.or(past.created_at).unwrap_or_default(),
                started_at: past.started_at,
                ended_at: past.completed_at.or(past.claimed_at.filter(|_| was_held)),
                outcome: match stated {
                    Stated::Done => Outcome::Done,
                    Stated::Failed => Outcome::Failed,
                    Stated::Cancelled | Stated::Obsolete => Outcome::Cancelled,
                    Stated::Open => Outcome::Released,
                },
                error: message
                    .map(|message| AttemptError { category: "imported".to_owned(), message }),
                note: was_held
                    .then(|| format!("it was {word} when it was imported from {}", self.format)),
            });
        }
        past.claimed_by = by.filter(|_| is_over);
        past.result = result;
        if !is_over {
            (past.claimed_at, past.started_at, past.completed_at) = (None, None, None);
        }
        status::read(node, &word, holder.as_deref(), &mut self.report);
        node.metadata.shift_remove(status::NOTE);
        Ok(())
    }

    /// The result; fields that a result does not have are its data.
    fn result(&self, record: &mut Record) -> Result<Option<TaskResult>, Fault> {
        let fields = match record.take("result") {
            None => return Ok(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(record.fault("result has to be an object")),
        };
        let mut result = Record::new(&record.path, record.line, fields);
        let mut read = TaskResult {
            output: result.text("output")?,
            files_modified: result.texts("files_modified")?,
            files_created: result.texts("files_created")?,
            branch: result.text("branch")?,
            commit: result.text("commit")?,
            error: result.text("error")?,
            data: None,
        };
        let mut rest = Node::default();
        result.rest(&mut rest, &mut Report::default());
        let data = match rest.metadata.shift_remove("data") {
            Some(Value::Object(data)) => data,
            other => other.into_iter().map(|data| ("data".to_owned(), data)).collect::<Map<_, _>>(),
        };
        let data: Map<String, Value> = data.into_iter().chain(rest.metadata).collect();
        read.data = Some(data).filter(|data| !data.is_empty()).map(Value::Object);
        if let (None, Some(Value::Object(data))) = (&read.error, &read.data)
            && data.get("cancelled") == Some(&Value::Bool(true))
        {
            read.error = data
                .get("reason")
                .and_then(Value::as_str)
                .filter(|why| !why.is_empty())
                .map(str::to_owned);
        }
        Ok(Some(read).filter(|read| *read != TaskResult::default()))
    }
}

/// A time; one without a zone is in UTC.
pub(crate) fn time(record: &mut Record, name: &str) -> Result<Option<Timestamp>, Fault> {
    let Some(text) = record.text(name)? else { return Ok(None) };
    let time = Timestamp::of_text(&text);
    time.map(Some).ok_or_else(|| {
        record.fault(format!("{name} is {text}: it has to be a time as in RFC 3339"))
    })
}

/// A whole number.
pub(super) fn whole(record: &mut Record, name: &str) -> Result<Option<u32>, Fault> {
    let Some(value) = record.take(name) else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let most = limit::SPAN.max as u32;
    number.filter(|number| *number <= most).map(Some).ok_or_else(|| {
        record.fault(format!("{name} is {value}: it has to be a whole number up to {most}"))
    })
}

/// Minutes, of which there is at least one.
fn minutes(record: &mut Record, name: &str) -> Result<Option<u32>, Fault> {
    Ok(whole(record, name)?
        .filter(|minutes| *minutes > 0)
        .map(|minutes| minutes.min(limit::SPAN.max as u32 / 60)))
}

/// Labels as a list, or in one text with commas.
pub(super) fn labels(record: &mut Record, name: &str) -> Result<Vec<String>, Fault> {
    let texts = record.texts(name)?;
    let labels = texts
        .iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|label| !label.is_empty());
    Ok(labels.map(str::to_owned).collect())
}
