//! Whatever stands in `config.toml` and `tokens.toml`: it is refused or understood, and nobody comes in by a broken file.
#![no_main]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use callboard::config;
use callboard::http::Token;
use callboard::http::tokens::{self, Keyring, Verdict};
use callboard_fuzz::directory;
use libfuzzer_sys::fuzz_target;

thread_local!(static DIR: PathBuf = directory().keep());

fuzz_target!(|input: &[u8]| DIR.with(|dir| {
    for name in [config::FILE, tokens::FILE_NAME] {
        fs::write(dir.join(name), input).unwrap();
        fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    drop(config::load(dir));
    let listed = tokens::list(dir);
    let keyring = Keyring::open(dir, Token::open(dir, false).unwrap());
    assert_eq!(listed.is_ok(), keyring.is_ok());
    if let Ok(keyring) = keyring {
        keyring.refresh();
        assert!(matches!(keyring.judge(input), Verdict::Stranger));
    }
}));
