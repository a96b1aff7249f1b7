//! A table in PostgreSQL, claimed from by `FOR UPDATE SKIP LOCKED`, over version 3 of its protocol.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use fs_err as fs;

use super::{Missing, Peer, Running, Started, directory, free_port, program, version};
use crate::cli::bench::drive::Worker;
use crate::cli::bench::place::{Place, leashed, unleash};

/// Directory in which Debian and its derivatives keep the programs, one subdirectory per release.
const BESIDE: &str = "/usr/lib/postgresql";
/// Users to run as instead of root, which PostgreSQL refuses; the first that exists is taken.
const INSTEAD_OF_ROOT: [&str; 2] = ["postgres", "nobody"];
const USER: &str = "bench";
const VERSION_3: i32 = 3 << 16;

const TABLE: &str = "
    DROP TABLE IF EXISTS tasks;
    CREATE TABLE tasks(
        id bigint PRIMARY KEY, description text NOT NULL, priority int NOT NULL DEFAULT 5,
        status text NOT NULL DEFAULT 'available', agent text, attempt int NOT NULL DEFAULT 0,
        lease_until timestamptz, output text, completed_at timestamptz
    );
    CREATE INDEX ready ON tasks(priority, id) WHERE status = 'available';";

const CLAIM: &str = "
    UPDATE tasks SET status = 'claimed', agent = $1, attempt = attempt + 1, lease_until = now() + \
                     interval '30 minutes'
    WHERE id = (
        SELECT id FROM tasks WHERE status = 'available' ORDER BY priority, id LIMIT 1 FOR UPDATE \
                     SKIP LOCKED
    )
    RETURNING id, description, attempt";

const COMPLETE: &str = "
    UPDATE tasks SET status = 'done', output = 'what was done', completed_at = now(), lease_until \
                        = NULL
    WHERE id = $2::text::bigint AND agent = $1 AND status = 'claimed'
    RETURNING id";

struct Postgres(Running);

pub(super) fn start(place: &mut Place) -> anyhow::Result<Started> {
    let beside = releases(Path::new(BESIDE));
    let (Some(initdb), Some(postgres)) = (program("initdb", &beside), program("postgres", &beside))
    else {
        return Ok(Started::Missing(Missing::Program("PostgreSQL")));
    };
    let user = if rustix::process::geteuid().is_root() {
        let Some(user) = INSTEAD_OF_ROOT.iter().find_map(|name| User::named(name)) else {
            let reason = "PostgreSQL does not run as root, and there is no user `postgres`; make \
                          one, or run as another user";
            return Ok(Started::Missing(Missing::Other(reason.to_owned())));
        };
        Some(user)
    } else {
        None
    };
    let version = version(&postgres, "--version");
    let base = directory(place, "postgres")?;
    if let Some(user) = &user {
        fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711))?;
        std::os::unix::fs::chown(&base, Some(user.id), Some(user.group))?;
    }
    let data = base.join("data");
    let mut command = as_user(&initdb, user.as_ref());
    command
        .current_dir(&base)
        .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER, "-D"])
        .arg(&data);
    let mut making = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut leash = making.stdin.take();
    let made = making.wait_with_output()?;
    unleash(&mut leash);
    ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr).trim());
    let port = free_port()?;
    let mut command = as_user(&postgres, user.as_ref());
    command.current_dir(&base).arg("-D").arg(&data).args(["-p", &port.to_string()]);
    for setting in [
        "listen_addresses=127.0.0.1",
        "unix_socket_directories=",
        "fsync=on",
        "synchronous_commit=on",
        "full_page_writes=on",
        "max_connections=200",
    ] {
        command.args(["-c", setting]);
    }
    Ok(Started::Here(Box::new(Postgres(Running::start(&postgres, command, port)?)), version))
}

/// Directories of programs, newest release first.
fn releases(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

struct User {
    id: u32,
    group: u32,
}

impl User {
    fn named(name: &str) -> Option<Self> {
        let table = fs::read_to_string("/etc/passwd").ok()?;
        let line = table.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some(Self { id: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    }
}

fn as_user(program: &Path, user: Option<&User>) -> Command {
    let mut command = leashed(program);
    if let Some(user) = user {
        command.uid(user.id).gid(user.group);
    }
    command
}

impl Peer for Postgres {
    fn fill(&mut self, tasks: usize) -> anyhow::Result<()> {
        let mut client = Client::connect(&self.0, 0)?;
        client.query(TABLE)?;
        client.query(&format!(
            "INSERT INTO tasks(id, description)
             SELECT number, 'do thing ' || number || ', and do it well' FROM generate_series(1, \
             {tasks}) AS number"
        ))?;
        client.query("VACUUM ANALYZE tasks")
    }

    fn connect(&self, number: usize) -> anyhow::Result<Box<dyn Worker>> {
        let mut client = Client::connect(&self.0, number)?;
        client.prepare("claim", CLAIM)?;
        client.prepare("complete", COMPLETE)?;
        Ok(Box::new(client))
    }
}

struct Client {
    stream: BufReader<TcpStream>,
    agent: String,
    task: String,
}

/// One message of the protocol: its kind, its length, and its parts.
fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let length = i32::try_from(size + 4).unwrap_or(i32::MAX).to_be_bytes();
    [&[kind], &length[..], &parts.concat()].concat()
}

impl Client {
    fn connect(running: &Running, number: usize) -> anyhow::Result<Self> {
        let mut client = Self {
            stream: running.connect()?,
            agent: format!("worker-{number}"),
            task: String::new(),
        };
        let parameters = format!("user\0{USER}\0database\0postgres\0\0");
        let start = message(0, &[&VERSION_3.to_be_bytes(), parameters.as_bytes()]);
        // Only the first message has no kind.
        client.stream.get_mut().write_all(&start[1..])?;
        client.until_ready()?;
        Ok(client)
    }

    /// Reads to the end of the answer. Returns the first column of the first row, if there is one.
    fn until_ready(&mut self) -> anyhow::Result<Option<String>> {
        let mut found = None;
        let mut trouble = None;
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head)?;
            let [kind, length @ ..] = head;
            let size = usize::try_from(i32::from_be_bytes(length) - 4)
                .context("a message without a length")?;
            let mut body = vec![0; size];
            self.stream.read_exact(&mut body)?;
            match kind {
                b'Z' => break,
                b'D' if found.is_none() => found = first_column(&body),
                b'E' => trouble = Some(String::from_utf8_lossy(&body).replace('\0', " ")),
                b'R' if body != [0; 4] => bail!("PostgreSQL asks for a password"),
                _ => {}
            }
        }
        match trouble {
            Some(trouble) => bail!("PostgreSQL answers {trouble}"),
            None => Ok(found),
        }
    }

    fn query(&mut self, sql: &str) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&message(b'Q', &[sql.as_bytes(), &[0]]))?;
        self.until_ready().map(drop)
    }

    fn prepare(&mut self, name: &str, sql: &str) -> anyhow::Result<()> {
        let parse = message(b'P', &[name.as_bytes(), &[0], sql.as_bytes(), &[0, 0, 0]]);
        self.stream.get_mut().write_all(&[parse, message(b'S', &[])].concat())?;
        self.until_ready().map(drop)
    }

    /// The first column of the row that a prepared statement returns.
    fn execute(&mut self, name: &str, parameters: &[&str]) -> anyhow::Result<Option<String>> {
        let count = u16::try_from(parameters.len())?.to_be_bytes();
        // An unnamed portal; every value is text.
        let mut bind = [&[0], name.as_bytes(), &[0, 0, 0], &count].concat();
        for parameter in parameters {
            bind.extend(i32::try_from(parameter.len())?.to_be_bytes());
            bind.extend(parameter.as_bytes());
        }
        bind.extend([0; 2]);
        let execute = message(b'E', &[&[0; 5]]);
        let all = [message(b'B', &[&bind]), execute, message(b'S', &[])].concat();
        self.stream.get_mut().write_all(&all)?;
        self.until_ready()
    }
}

fn first_column(row: &[u8]) -> Option<String> {
    let size = usize::try_from(i32::from_be_bytes(row.get(2..6)?.try_into().ok()?)).ok()?;
    String::from_utf8(row.get(6..6 + size)?.to_vec()).ok()
}

impl Worker for Client {
    fn claim(&mut self) -> anyhow::Result<bool> {
        let agent = self.agent.clone();
        let task = self.execute("claim", &[&agent])?;
        let found = task.is_some();
        self.task = task.unwrap_or_default();
        Ok(found)
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        let (agent, task) = (self.agent.clone(), self.task.clone());
        let done = self.execute("complete", &[&agent, &task])?;
        ensure!(done.as_deref() == Some(&task), "PostgreSQL has not completed {task}: {done:?}");
        Ok(())
    }
}
