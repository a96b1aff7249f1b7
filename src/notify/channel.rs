//! How a notice reaches a person. A way that fails or hangs is tried again later; nothing here
//! waits for longer than [`PATIENCE`].

use std::env;
use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use fs_err as fs;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use sha2::Sha256;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::notice::Notice;
use super::settings::{Secret, Way};

/// How long one attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Header with the signature of the body.
const SIGNATURE: &str = "x-callboard-signature";
/// Header with the notice's id.
const ID: &str = "x-callboard-id";
/// Bytes of what a failed program wrote that are kept.
const COMPLAINT: usize = 500;

/// Delivers the notice. An error says why that failed, in words for the log.
pub(crate) async fn deliver(way: &Way, notice: &Notice) -> Result<(), String> {
    let delivered = async {
        match way {
            Way::Command(words) => run(words, &json(notice)?).await,
            Way::Desktop => show(notice).await,
            Way::Webhook { url, secret } => post(url, secret.as_ref(), notice).await,
        }
    };
    timeout(PATIENCE, delivered)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} seconds", PATIENCE.as_secs())))
}

fn json(notice: &Notice) -> Result<Vec<u8>, String> {
    serde_json::to_vec(notice).map_err(|error| error.to_string())
}

/// Runs the program in a process group of its own, so that nothing of it is left when it hangs.
async fn run(words: &[String], input: &[u8]) -> Result<(), String> {
    let [program, arguments @ ..] = words else { return Err("there is no program".to_owned()) };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // What is told is on standard input; a token is not passed on.
    command.env_remove(crate::config::TOKEN_VARIABLE);
    if let Some(home) = env::home_dir() {
        command.current_dir(home);
    }
    let mut child = command.spawn().map_err(|error| format!("{program} cannot be run: {error}"))?;
    let group = Group(child.id());
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read is none that failed.
        drop(stdin.write_all(input).await);
    }
    let output = child.wait_with_output().await.map_err(|error| error.to_string())?;
    drop(group);
    if output.status.success() {
        return Ok(());
    }
    let complaint = &output.stderr[..output.stderr.len().min(COMPLAINT)];
    let complaint = String::from_utf8_lossy(complaint);
    let complaint = match complaint.trim() {
        "" => String::new(),
        said => format!(": {said}"),
    };
    let end = match output.status.code() {
        Some(code) => format!("exit code {code}"),
        None => output.status.to_string(),
    };
    Err(format!("{program} ended with {end}{complaint}"))
}

/// The processes of a program, killed when this is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let group = self.0.and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            // They may have ended.
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

async fn show(notice: &Notice) -> Result<(), String> {
    let (title, text) = (heading(notice), format!("{}\n{}", notice.text, notice.command));
    let words: Vec<&str> = if cfg!(target_os = "macos") {
        // The texts are arguments of the script and no part of it.
        let script = "display notification (item 2 of argv) with title (item 1 of argv)";
        vec!["osascript", "-e", "on run argv", "-e", script, "-e", "end run", &title, &text]
    } else {
        vec!["notify-send", "--app-name=callboard", "--", &title, &text]
    };
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let words = if cfg!(target_os = "macos") {
        words
    } else {
        words.iter().map(|word| markup(word)).collect()
    };
    run(&words, &[]).await
}

/// The text for desktops that take it as markup.
fn markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn heading(notice: &Notice) -> String {
    match &notice.title {
        Some(title) => format!("callboard: {title}"),
        None => "callboard".to_owned(),
    }
}

/// Posts the notice. The body of the answer is not read, and a redirection is not followed: it could
/// lead anywhere.
async fn post(url: &Uri, secret: Option<&Secret>, notice: &Notice) -> Result<(), String> {
    let body = json(notice)?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("callboard/", env!("CARGO_PKG_VERSION")))
        .header(ID, &notice.id);
    if let Some(secret) = secret {
        request = request.header(SIGNATURE, signature(&key(secret)?, &body));
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let answer = client()?.request(request).await.map_err(|error| failed(&error))?;
    match answer.status() {
        status if status.is_success() => Ok(()),
        status if status.is_redirection() => {
            Err(format!("the receiver answered {status}; give the address that it leads to"))
        }
        status => Err(format!("the receiver answered {status}")),
    }
}

fn client() -> Result<Client<HttpsConnector<HttpConnector>, Full<Bytes>>, String> {
    let connector = HttpsConnectorBuilder::new().with_native_roots();
    let connector = connector.map_err(|error| format!("the system's certificates: {error}"))?;
    let connector = connector.https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

fn key(secret: &Secret) -> Result<Vec<u8>, String> {
    let key = match secret {
        Secret::File(path) => fs::read(path).map_err(|error| error.to_string())?,
        Secret::Variable(name) => env::var_os(name)
            .map(std::ffi::OsString::into_encoded_bytes)
            .ok_or_else(|| format!("the environment variable {name} is not set"))?,
    };
    match key.trim_ascii_end() {
        [] => Err("the secret for the signature is empty".to_owned()),
        key => Ok(key.to_owned()),
    }
}

/// `sha256=` and the HMAC-SHA256 of the body in hexadecimal, as GitHub signs webhooks.
fn signature(key: &[u8], body: &[u8]) -> String {
    let mut text = "sha256=".to_owned();
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return text };
    mac.update(body);
    for byte in mac.finalize().into_bytes() {
        _ = write!(text, "{byte:02x}");
    }
    text
}

/// Why nothing came back.
fn failed(error: &hyper_util::client::legacy::Error) -> String {
    // The client's own words say in which of its steps it was.
    let cause = std::error::Error::source(error).map(reasons).unwrap_or_default();
    let what = if error.is_connect() {
        "the receiver cannot be reached"
    } else {
        "the receiver does not answer as a server of HTTP does"
    };
    format!("{what}: {cause}")
}

/// The error with what caused it: by itself it says only that something failed.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 2 of RFC 4231.
    #[test]
    fn the_signature_is_an_hmac_of_the_body() {
        assert_eq!(
            signature(b"Jefe", b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
