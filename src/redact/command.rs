//! Secrets among the arguments of commands: `mysql -p…`, `sshpass -p …`, `curl -u user:…`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::value::is_reference;
use super::{Finding, floor};

/// Commands, how long a line may be up to the argument, and what stands before the secret.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("mysql|mariadb|mycli|xtrabackup|mydumper", r"[\w.-]*", "-p"),
    ("sshpass", "", "-p ?"),
    ("login", "", "-p[ =]?"),
    ("mongo", r"\w*", "-p[ =]?"),
    ("redis-cli|redis-benchmark|keydb-cli|valkey-cli", "", "-a ?"),
    ("ldap", r"\w+", "-w ?"),
    ("smbclient|rpcclient|smbmap|smbget|mount.cifs|wmic", "", r#"-U ?["']?[^\s%"']+%"#),
    ("7z|7za|7zr|rar|unrar", "", "-p"),
    ("zip|unzip|sqlcmd|osql|ipmitool", "", "-P ?"),
    ("openssl", "", r#"-(?:pass(?:in|out)?|k|K)[ =]["']?(?:pass:)?"#),
    (
        "keytool|jarsigner|signtool|apksigner",
        "",
        r"[-/](?:storepass|keypass|srcstorepass|deststorepass|p|pass)[ =:](?:pass:)?",
    ),
    ("htpasswd", "", r"-\w*b\w*[ ][^\s]+[ ][^\s]+[ ]"),
    (
        "curl|wget|httpie|ffuf|rclone|lftp|svn|mosquitto_pub|mosquitto_sub|cqlsh|influx|elasticdump|rabbitmqadmin|rabbitmqctl",
        "",
        "(?:--?pass(?:word|phrase)?|-P|-w)[ =]",
    ),
    (
        "curl|wget|httpie|lftp|neo4j|cypher-shell|elasticsearch-users",
        "",
        r#"(?:-u|--user|--proxy-user|-U|-a|--auth|--credentials|-A)[ =]?["']?[A-Za-z0-9._@+\\-]*:"#,
    ),
    ("xfreerdp|mstsc|cmdkey|psexec|schtasks", "", "[/-](?:p|pass|password|rp)[: ]"),
    ("snmpwalk|snmpget|snmpset|snmpbulkwalk", "", "-[AXc] ?"),
    ("gpg|gpg2", "", "--passphrase[ =]"),
    (
        "nmcli|wpa_passphrase|iwconfig|netsh",
        "",
        r#"(?:password|key|passphrase|wpa_passphrase[ ]["']?[\w -]+["']?)[ =]"#,
    ),
    ("vault|doppler|infisical", "[ ](?:login|unlock)", ""),
    ("useradd|usermod|adduser", "", "-p ?"),
];

/// Commands that read the secret from `echo SECRET |`.
const READERS: &str = r"sudo\b[^\n|]{0,20}-S|\S+[ ]login|\S+[ ]registry|gh[ ]auth|passwd|chpasswd|cryptsetup|gpg|kinit|su\b|openssl|\S*sshpass|npm|vault|smbpasswd|htpasswd|bw|age";

const VALUE: &str = r#"(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"'`;&|<>)\\]+))"#;

/// Commands, how far a line is searched, and the pattern of each.
struct Commands {
    names: AhoCorasick,
    /// The pattern of each name.
    rows: Vec<usize>,
    patterns: Vec<Regex>,
}

/// Always present, because the patterns are constants; a test builds it.
static KNOWN: LazyLock<Option<Commands>> = LazyLock::new(|| {
    let patterns = COMMANDS.iter().map(|(_, more, before)| {
        let flag = if before.is_empty() { String::new() } else { format!("[ \\t]{before}") };
        let flag = if flag.is_empty() { "[ \\t]+" } else { &flag };
        format!(r#"^{more}(?:\.exe)?(?:[ \t][^\n;&|]*?)??{flag}{VALUE}"#)
    });
    let piped = format!(
        r#"^[ \t]+(?:-n?e?[ \t]+)?(?:["']?[\w.-]+:)?{VALUE}(?:\\n["'])?[ \t]*\|[ \t]*(?:{READERS})"#
    );
    let patterns = patterns.chain([piped]).map(|pattern| Regex::new(&pattern));
    let all = COMMANDS.iter().map(|(names, ..)| *names).chain(["echo|printf"]).enumerate();
    let all = all.flat_map(|(row, names)| names.split('|').map(move |name| (row, name)));
    let (rows, names): (Vec<_>, Vec<_>) = all.unzip();
    let names = AhoCorasick::new(names).ok()?;
    Some(Commands { names, rows, patterns: patterns.collect::<Result<_, _>>().ok()? })
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let Some(known) = &*KNOWN else { return Vec::new() };
    let names = known.names.find_overlapping_iter(text);
    let begins = |at: usize| {
        !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    let names = names.filter(|name| begins(name.start()));
    names.filter_map(|name| known.finding(text, name.end(), name.pattern().as_usize())).collect()
}

impl Commands {
    fn finding(&self, text: &str, from: usize, name: usize) -> Option<Finding> {
        const LONGEST_LINE: usize = 500;
        let rest = &text[from..floor(text, from + LONGEST_LINE)];
        let captures = self.patterns[self.rows[name]].captures(rest)?;
        let value = captures.iter().skip(1).flatten().next()?;
        let is_secret = value.len() > 2
            && !value.as_str().starts_with(['-', '/'])
            && !is_reference(value.as_str());
        let place = from + value.start()..from + value.end();
        is_secret.then_some(Finding { place, kind: "password" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(KNOWN.is_some());
    }

    #[test]
    fn arguments_that_are_secrets_are_told_from_others() {
        for text in [
            "mysql -h db -uroot -p⟦sesame⟧ app",
            "mysqldump -p'⟦two words⟧' app",
            "sshpass -p ⟦swordfish⟧ ssh a@b",
            "docker login -u ci -p ⟦swordfish⟧ ghcr.io",
            "redis-cli -h cache -a ⟦swordfish⟧ ping",
            "curl -u admin:⟦swordfish⟧ https://host",
            "openssl enc -aes-256-cbc -pass pass:⟦swordfish⟧ -in a",
            "echo ⟦swordfish⟧ | sudo -S apt update",
            "zip -P ⟦swordfish⟧ a.zip b",
        ] {
            let (before, rest) = text.split_once('⟦').unwrap();
            let (secret, after) = rest.split_once('⟧').unwrap();
            let text = format!("{before}{secret}{after}");
            let found: Vec<_> = findings(&text).into_iter().map(|one| &text[one.place]).collect();
            assert_eq!(found, [secret], "{text}");
        }
        for text in [
            "mysql -u root -p app",
            "mysql -P 3306 -u root",
            "docker run -p 8080:80 nginx",
            "mkdir -p a/b && cp -p c d",
            "sshpass -p \"$PASS\" ssh a@b",
            "curl -u \"$USER:$PASS\" https://host",
            "echo done | tee log",
        ] {
            assert!(findings(text).is_empty(), "{text}");
        }
    }
}
