//! A server behind a TLS proxy, as other machines reach it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::harness::Board;
use crate::harness::http::Server;

/// Exit code: the board cannot be used.
const FAILED: i32 = 3;

/// A proxy that decrypts requests for a server and encrypts its answers.
struct Front {
    url: String,
    certificate: PathBuf,
    token: String,
    _runtime: Runtime,
}

impl Front {
    fn of(server: &Server, board: &Board) -> Self {
        Self::with(server, board, CertificateParams::new(["localhost".to_owned()]).unwrap())
    }

    fn with(server: &Server, board: &Board, params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        let certificate = board.file("front.pem");
        std::fs::write(&certificate, own.pem()).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![own.der().clone()], key).unwrap();
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        runtime.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), server.address));
        Self { url, certificate, token: server.token.clone(), _runtime: runtime }
    }

    /// A command that knows the token but not the certificate.
    fn command(&self, board: &Board, arguments: &[&str]) -> Command {
        let mut command = board.command();
        command.args(["--server", &self.url]).args(arguments).env("CALLBOARD_TOKEN", &self.token);
        command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
        command
    }

    fn trusted(&self, board: &Board, arguments: &[&str]) -> Command {
        let mut command = self.command(board, arguments);
        command.env("SSL_CERT_FILE", &self.certificate);
        command
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, server: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that does not trust the certificate hangs up.
            let Ok(mut outside) = acceptor.accept(stream).await else { return };
            let mut inside = TcpStream::connect(server).await.unwrap();
            drop(copy_bidirectional(&mut outside, &mut inside).await);
        });
    }
}

#[test]
fn commands_and_the_feed_reach_a_server_over_tls() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Server::on(&board);
    let front = Front::of(&server, &board);
    let added = elsewhere
        .finish(&mut front.trusted(&elsewhere, &["add", "what is to be done", "--id", "a"]));
    assert_eq!((added.status.code(), added.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        board.cli_ok("get_task", json!({"task_id": "a"}))["task"]["description"],
        "what is to be done"
    );
    let mut watch = front.trusted(&elsewhere, &["watch", "--since", "0", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let events = BufReader::new(watch.stdout.take().unwrap()).lines();
    let kinds =
        events.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["kind"].clone());
    let found = kinds.take(2).any(|kind| kind == "tasks_created");
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(found);
}

#[test]
fn who_does_not_trust_the_certificate_is_told_how_to() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Server::on(&board);
    let front = Front::of(&server, &board);
    for arguments in [["--json", "status"], ["--json", "watch"]] {
        let refused = elsewhere.finish(&mut front.command(&elsewhere, &arguments));
        assert_eq!(
            (refused.status.code(), refused.code().as_str()),
            (Some(FAILED), "server_untrusted")
        );
        assert!(refused.stderr.contains("SSL_CERT_FILE"), "{}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    }
}

#[test]
fn certificate_that_is_refused_is_refused_by_its_fault() {
    let (board, elsewhere) = (Board::new(), Board::new());
    let server = Server::on(&board);
    let named = |name: &str| CertificateParams::new([name.to_owned()]).unwrap();
    let (mut late, mut early, mut authority) =
        (named("localhost"), named("localhost"), named("localhost"));
    (late.not_before, late.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 2, 3));
    (early.not_before, early.not_after) = (date_time_ymd(2090, 1, 2), date_time_ymd(2091, 1, 1));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    for (params, words) in [
        (named("other.example"), ["other.example", "by a name"]),
        (late, ["expired 2021-02-03", "renew"]),
        (early, ["only from 2090-01-02", "clock"]),
        (authority, ["authority's own", "CA:FALSE"]),
    ] {
        let front = Front::with(&server, &board, params);
        for command in ["status", "watch"] {
            let refused = elsewhere.finish(&mut front.trusted(&elsewhere, &["--json", command]));
            assert_eq!(refused.code(), "server_untrusted", "{}", refused.stderr);
            words.iter().for_each(|word| {
                assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr)
            });
            assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        }
    }
}
