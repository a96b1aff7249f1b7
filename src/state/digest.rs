//! SHA-256, as it is written down everywhere: in hexadecimal digits.

use sha2::{Digest, Sha256};

pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
