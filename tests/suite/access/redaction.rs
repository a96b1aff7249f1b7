//! Redaction: how much it finds, what it leaves alone, what it costs, and that no secret gets past
//! it to the disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use callboard::redact;
use callboard::state::id::Chance;
use serde_json::{Value, json};

use super::shapes;
use crate::harness::{Board, size};

const LEAST_RECALL: f64 = 0.97;
const MOST_FALSE: f64 = 0.01;
/// In a place, stands for a secret with characters in it that nobody sees.
const BROKEN: char = '§';

fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/redaction").join(name);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().filter(|line| !line.is_empty()).map(unescaped).collect()
}

fn unescaped(line: &str) -> String {
    [("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("⧵", "\\")]
        .iter()
        .fold(line.to_owned(), |line, (escape, meant)| line.replace(escape, meant))
}

/// A secret made from a template: `¦` is removed, and `{alnum:36}` becomes 36 random characters.
fn made_up(template: &str, chance: &mut Chance) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let blank = from
            .split_once('}')
            .and_then(|(blank, after)| Some((filled(&blank[1..], chance)?, after)));
        match blank {
            Some((characters, after)) => {
                text.push_str(&characters);
                rest = after;
            }
            None => {
                text.push('{');
                rest = &from[1..];
            }
        }
    }
    (text + rest).replace('¦', "")
}

fn filled(blank: &str, chance: &mut Chance) -> Option<String> {
    if blank == "uuid" {
        let parts = [8, 4, 4, 4, 12].map(|length| drawn("hex", length, chance).unwrap());
        return Some(parts.join("-"));
    }
    let (class, length) = blank.split_once(':')?;
    drawn(class, length.parse().ok()?, chance)
}

fn drawn(class: &str, length: usize, chance: &mut Chance) -> Option<String> {
    let alphabet: &[u8] = match class {
        "alnum" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "b64" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "upper" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "hex" => b"0123456789abcdef",
        "digits" => b"0123456789",
        _ => return None,
    };
    Some(
        (0..length)
            .map(|_| char::from(alphabet[chance.draw() as usize % alphabet.len()]))
            .collect(),
    )
}

/// A text and the secret in it.
pub(crate) struct Positive {
    pub text: String,
    pub secret: String,
}

pub(crate) fn positives() -> Vec<Positive> {
    let mut chance = Chance::new(1);
    let places = lines("places.txt");
    let forms = lines("forms.txt");
    let mut positives = Vec::new();
    for (form, place) in forms.iter().flat_map(|form| places.iter().map(move |place| (form, place)))
    {
        let secret = made_up(form, &mut chance);
        let (begin, end) = secret.split_at(secret.len() - 6);
        let broken = format!("{begin}\u{200b}\u{fffd}{end}");
        let text = place.replace('@', &secret).replace(BROKEN, &broken);
        positives.push(Positive { text, secret });
    }
    for line in lines("named.txt") {
        let line = made_up(&line, &mut chance);
        let (before, rest) = line.split_once('⟦').unwrap_or_else(|| panic!("no ⟦: {line}"));
        let (secret, after) = rest.split_once('⟧').unwrap_or_else(|| panic!("no ⟧: {line}"));
        positives
            .push(Positive { text: format!("{before}{secret}{after}"), secret: secret.to_owned() });
    }
    positives
}

impl Positive {
    /// The longest word of the secret.
    pub(crate) fn telling(&self) -> &str {
        let words = self.secret.split(|c: char| !(c.is_alphanumeric() || "+/_-".contains(c)));
        words.max_by_key(|word| word.len()).unwrap()
    }
}

/// Whether the most telling part is gone: the end of the last word, after any prefix that is not
/// secret.
pub(crate) fn is_gone(positive: &Positive) -> bool {
    let Some((clean, _)) = redact::text(&positive.text) else { return false };
    let telling = positive.telling();
    let tail: String = telling.chars().skip(telling.chars().count() / 2).collect();
    let kept = clean.replace(['\u{200b}', '\u{fffd}'], "");
    let mut parts = kept.split(redact::MARK);
    let first = parts.next().unwrap_or_default();
    let mut others = parts.map(|part| part.split_once(']').map_or(part, |(_, rest)| rest));
    !first.contains(&tail) && others.all(|part| !part.contains(&tail))
}

/// How many there are and were missed.
type Counts = BTreeMap<&'static str, (usize, usize)>;

#[test]
fn at_least_97_of_100_shapes_that_were_never_seen_are_found() {
    let shapes = size("CALLBOARD_SHAPES", 4_000);
    let seed = size("CALLBOARD_SEED", 48);
    let mut chance = Chance::new(seed as u64);
    let (mut by_place, mut by_value, mut by_name) = (Counts::new(), Counts::new(), Counts::new());
    let (mut missed, mut examples) = (0, Vec::new());
    for _ in 0..shapes {
        let shape = shapes::shape(&mut || chance.draw());
        let clean =
            redact::text(&shape.text).map_or_else(|| shape.text.clone(), |(clean, _)| clean);
        let is_kept =
            clean.contains(shape.secret[shape.secret.len() / 2..].trim_end_matches(['=', '!']));
        let counted = [
            (&mut by_place, shape.place),
            (&mut by_value, shape.value),
            (&mut by_name, shape.name),
        ];
        for (counts, of) in counted {
            let (all, missed) = counts.entry(of).or_default();
            *all += 1;
            *missed += usize::from(is_kept);
        }
        missed += usize::from(is_kept);
        examples.extend(is_kept.then_some(shape.text));
    }
    for counts in [&by_place, &by_value, &by_name] {
        for (of, (all, missed)) in counts.iter().filter(|(_, (_, missed))| *missed > 0) {
            println!("{missed} of {all}: {of}");
        }
    }
    println!("shapes of seed {seed}: {missed} of {shapes} were missed");
    assert!((missed as f64) < shapes as f64 * (1.0 - LEAST_RECALL), "{examples:#?}");
    // No place and no name as a whole is unknown.
    for counts in [&by_place, &by_name] {
        let unknown: Vec<_> =
            counts.iter().filter(|(_, (all, missed))| *all >= 10 && missed * 4 > *all).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn at_least_97_of_100_secrets_are_found_and_at_most_1_of_100_harmless_texts_is_touched() {
    let positives = positives();
    let missed: Vec<_> =
        positives.iter().filter(|one| !is_gone(one)).map(|one| &one.text).collect();
    let harmless = lines("harmless.txt");
    let touched: Vec<_> =
        harmless.iter().filter_map(|line| Some((line, redact::text(line)?.0))).collect();
    assert!(
        lines("forms.txt").len() >= 120 && lines("places.txt").len() >= 25 && harmless.len() >= 700,
        "{} and {}",
        positives.len(),
        harmless.len()
    );
    let recall = 1.0 - missed.len() as f64 / positives.len() as f64;
    let wrong = touched.len() as f64 / harmless.len() as f64;
    println!("missed: {missed:#?}\ntouched: {touched:#?}");
    println!(
        "redaction: recall {:.1} % of {}, false positives {:.2} % of {}",
        recall * 100.0,
        positives.len(),
        wrong * 100.0,
        harmless.len()
    );
    assert!(recall >= LEAST_RECALL, "{missed:#?}");
    assert!(wrong <= MOST_FALSE, "{touched:#?}");
}

/// All source and text in this repository, where nothing is secret.
#[test]
fn this_repository_is_left_alone() {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()];
    let (mut count, mut touched) = (0_usize, Vec::new());
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let kind = path
                .extension()
                .map(|kind| kind.to_string_lossy().into_owned())
                .unwrap_or_default();
            if path.is_dir() {
                if ![".git", "target", "redaction", "redact"].contains(&name.as_str()) {
                    open.push(path);
                }
            } else if ["rs", "md", "toml", "json", "lock", "py", "mjs"].contains(&kind.as_str()) {
                for line in fs::read_to_string(&path).unwrap_or_default().lines() {
                    count += 1;
                    touched.extend(
                        redact::text(line).map(|_| format!("{}: {}", path.display(), line.trim())),
                    );
                }
            }
        }
    }
    println!(
        "redaction: {} of {count} lines of this repository touched: {touched:#?}",
        touched.len()
    );
    assert!(count > 10_000 && touched.len() * 1_000 <= count, "{touched:#?}");
}

/// One megabyte of what agents write, line by line.
fn long_text(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines.iter().cycle() {
        if text.len() > 1_000_000 {
            return text;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn timed<T>(work: impl Fn() -> T) -> Duration {
    let once = || {
        let start = Instant::now();
        std::hint::black_box(work());
        start.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

#[test]
fn time_grows_with_the_text_and_no_faster() {
    let prose = long_text(&lines("harmless.txt"));
    let part = &prose[..prose.floor_char_boundary(100_000)];
    let json = json!({"text": part}).to_string();
    let (redacted, parsed) =
        (timed(|| redact::text(part)), timed(|| serde_json::from_str::<Value>(&json).unwrap()));
    println!(
        "redaction: {:.1} µs per kB beside {:.1} µs per kB of JSON parsing (unoptimised, in a \
         text full of telling names)",
        redacted.as_secs_f64() * 1e6 / 100.0,
        parsed.as_secs_f64() * 1e6 / 100.0
    );
    let pem = ["-----BEGIN PRI", "VATE KEY-----\n"].concat();
    let hostile = [
        ("harmless prose", prose.clone()),
        ("one long name", "token".repeat(200_000)),
        ("names without values", "token= ".repeat(150_000)),
        ("equals signs", "=".repeat(1_000_000)),
        ("beginnings of keys", pem.repeat(30_000)),
        ("beginnings of keys with bodies", format!("{pem}{}\n", "A1b2".repeat(10)).repeat(12_000)),
        ("addresses without an end", "a://b:".repeat(150_000)),
        ("prefixes", "sk-".repeat(300_000)),
        ("prefixes with tails", format!("ghp_{} ", "aB3".repeat(8)).repeat(30_000)),
        ("commands", "mysql ".repeat(150_000)),
        ("passwords spoken of", "use the password ".repeat(60_000)),
        ("cookies", "Cookie: a=b; ".repeat(80_000)),
        ("unseen characters", "a\u{200b}".repeat(250_000)),
        ("addresses with names", "a://b@".repeat(150_000)),
        ("dots", "eyJ".to_owned() + &"abcdefgh.".repeat(100_000)),
    ];
    for (name, text) in hostile {
        let eighth = &text[..text.floor_char_boundary(text.len() / 8)];
        let (short, long) = (timed(|| redact::text(eighth)), timed(|| redact::text(&text)));
        println!(
            "redaction of {name}: {} kB in {long:?}, an eighth in {short:?}",
            text.len() / 1_000
        );
        // Eight times as long if linear, 64 times if quadratic.
        assert!(long < short * 30 + Duration::from_millis(50), "{name}: {short:?}, then {long:?}");
    }
}

/// A secret is put into every text that a worker's call may contain.
#[test]
fn no_text_that_an_operation_takes_brings_a_secret_to_the_disk() {
    let board = Board::new();
    let mut client = board.mcp();
    let mut chance = Chance::new(2);
    let mut secrets = Vec::new();
    let mut secret = || {
        let made = made_up("gh¦p_{alnum:36}", &mut chance);
        secrets.push(made.clone());
        made
    };
    let reply = client.ok(
        "init_coordination",
        json!({"goal": secret(), "master_plan": format!("use {}", secret())}),
    );
    assert_eq!(reply["redacted"], 2);
    client.ok("register_agent", json!({"agent_id": "w1", "role": "leader"}));
    let context = json!({"description": secret(), "hints": secret(), "title": secret(), "context_files": [secret()], "id": "t1", "tags": [secret()]});
    assert_eq!(client.ok("create_task", context)["redacted"], 5);
    client.ok(
        "create_tasks_batch",
        json!({"tasks": [{"description": secret(), "id": "t2"}, {"description": "x", "hints": secret(), "id": "t3"}]}),
    );
    client.ok("claim_task", json!({"agent_id": "w1", "task_id": "t1"}));
    client.ok("heartbeat", json!({"agent_id": "w1", "note": secret()}));
    let data = json!({"password": "hunter-two", "secret": {"value": "$ecret-three"}, "nested": [{"text": secret()}],
        secret(): 1});
    secrets_of(&mut client, &secret(), data);
    let settings = json!({"scope": "s", "settings": {secret(): {"token": "@secret-four"}}});
    assert_eq!(client.ok("save_bundle", settings)["redacted"], 2);
    client.ok("claim_task", json!({"agent_id": "w1", "task_id": "t2"}));
    client.ok("fail_task", json!({"agent_id": "w1", "task_id": "t2", "error": secret()}));
    client.ok("add_discovery", json!({"agent_id": "w1", "content": secret(), "tags": ["x"]}));
    client.ok("cancel_task", json!({"task_id": "t3", "reason": secret()}));
    client.ok("pause", json!({"reason": secret()}));
    let batch =
        json!({"operations": [{"name": "create_task", "arguments": {"description": secret()}}]});
    let reply = client.ok("apply_batch", batch);
    assert_eq!((&reply["redacted"], &reply["results"][0]["redacted"]), (&json!(1), &Value::Null));
    let quiet = client.ok("create_task", json!({"description": "nothing to hide"}));
    assert_eq!(quiet.get("redacted"), None);
    client.kill();
    let mut seen = BTreeMap::new();
    for entry in
        fs::read_dir(board.dir()).unwrap().chain(fs::read_dir(board.file("bundles/s")).unwrap())
    {
        let path = entry.unwrap().path();
        if path.is_file() {
            seen.insert(
                path.clone(),
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            );
        }
    }
    secrets.extend(["hunter-two", "$ecret-three", "@secret-four"].map(str::to_owned));
    assert!(secrets.len() > 15 && seen.len() > 2);
    for (path, content) in &seen {
        let kept: Vec<_> = secrets.iter().filter(|secret| content.contains(*secret)).collect();
        assert!(kept.is_empty(), "{}: {kept:?}", path.display());
    }
    assert_eq!(board.task("t1")["result"]["data"]["password"], "[redacted: password]");
}

fn secrets_of(client: &mut crate::harness::Client, secret: &str, data: Value) {
    let result = json!({"agent_id": "w1", "task_id": "t1", "output": secret, "data": data});
    assert_eq!(client.ok("complete_task", result)["redacted"], 5);
}
