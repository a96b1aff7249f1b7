//! Passwords that are nothing but a word, as people choose them. Whether a word is one shows from
//! what it says and from what stands around it: a sentence about passwords goes on, a password is
//! said alone.

use super::telling::Habit;
use super::value::{has, is_secret, is_wordy};

/// Words that say something about a password, a field or a type.
const NO_PASSWORDS: &str = "\
    a able about account ages accepted access active add after again against all allowed already also always an \
    and another any anything are argument array as ask asked at attempt auth authenticated \
    authentication authorization auto available base64 be because been before being below \
    blank block body bool boolean both box bucket but by bytes callback called can cannot change changed \
    char characters check checked checks column command commands compromised config configured contains content \
    correct count cracked cred credential credentials crypt current data date default deleted dialog \
    denied details digest disabled does done else email empty enabled encoded encrypted enforced \
    enter env equal equals error even every exceeds exists expired expires expiry exposed fail \
    failed fails false field fields file files fine flag flow float for forgotten form format found from function \
    generated generation generator get given good grant group handling hash hashed hashing have \
    header here hidden hint host how id if in incorrect info inherit input insecure inside instead \
    int integer invalid is issue it its just kept key known label last leaked least length less \
    let letters list login long lost malformed management manager manual mask masked match matches \
    matching may mismatch missing model must name needed never new nil no none not nothing null \
    nullable number object obsolete of off ok old on once one only optional options or other out \
    outdated over param parameter passed passing passphrase passthrough passwd password passwords \
    path pattern phrase pin plain plaintext please policy present private prompt prompts \
    protected protection properties property provided provider public pwd pw random raw ready received recovery \
    redacted ref refused rejected removed required requirement requirements reset resets reused \
    revealed revoked right rotated rotation rule rules safe said salt same saved secret secrets secure \
    screen sensitive sent service store storage strategy session set setting settings shared short should shown shows some \
    somewhere source special state static stays still stored strength string strong struct \
    submit supplied support symbol system table test text than that the their them then there \
    they this through to today token tokens too too-short true twice type undefined undo union \
    unique unknown unset updated url use used user username users using utf8 valid validate \
    validated validation validator value values varchar variable vault verification verified \
    verify via view visible void was we weak were what when where which while who why will with \
    without word words works would write wrong yes yet you your yours zero \
    muss müssen darf soll sollte ist nicht kein keine falsch fehlt ungültig vergessen ändern wird \
    wurde zurücksetzen eingeben erforderlich leer es no está debe incorrecta incorrecto inválida \
    olvidada olvidado obligatoria requerida cambiar única único pública privada primaria secreta válida correcta segura débil larga corta richtig korrekt gültig sicher geheim lang kurz correta forte fraca valide doit est incorrect invalide oublié oubliée \
    requis obligatoire non deve errata obbligatoria dimenticata não inválida errada obrigatória \
    esqueci moet fout vergeten verplicht должен неверный не забыли обязателен верный слабый менее musí wymagane \
    nieprawidłowe 必須 必填 错误 不能为空 无效 필수";

/// Words before which a value may end in the middle of a sentence.
const PREPOSITIONS: &str = "\
    for on at in and to when if as from or so then but via with you we it – — - für auf bei und im \
    am in zum para en y con pour sur et dans à per su e con em na no voor op для на и в от";

/// Ends of words that say how something is, or what is done to it.
const SAID_OF_THINGS: [&str; 12] =
    ["ed", "ing", "able", "ible", "ly", "ive", "tion", "ment", "ness", "ized", "ised", "ful"];

/// Parts of words that name secrets or types rather than being a secret.
const NAMING: [&str; 21] = [
    "passw",
    "passphrase",
    "token",
    "credential",
    "string",
    "hash",
    "bcrypt",
    "argon",
    "crypt",
    "contrase",
    "kennwort",
    "senha",
    "motdepasse",
    "wachtwoord",
    "парол",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "input",
];

/// Whether people may have chosen the word for a secret: a word with digits, or with signs.
pub(super) fn may_be_token(word: &str) -> bool {
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    let is_mixed = count(u8::is_ascii_digit) >= 2 && count(u8::is_ascii_alphabetic) >= 3;
    (is_mixed || has(word, |byte| b"!@#$%^&*?~+=".contains(byte)))
        && !names_a_secret(word)
        && is_secret(word, Habit::Password, true)
}

/// Whether a word of programs says what kind of thing it is.
pub(super) fn names_a_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    NAMING.iter().any(|part| word.contains(part))
        || ["key", "secret", "auth", "config", "param", "value", "field"]
            .iter()
            .any(|part| word.contains(part))
}

pub(super) fn is_in(list: &str, word: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// True if a password may be this word, or these words between hyphens.
pub(super) fn may_be_password(word: &str) -> bool {
    const SHORTEST: usize = 4;
    let is_of_words = |c: char| c.is_alphabetic() || matches!(c, '-' | '_');
    let lower = word.to_lowercase();
    word.chars().count() >= SHORTEST
        && word.chars().all(is_of_words)
        && word.chars().any(|c| c.is_alphabetic() && u32::from(c) < 0x2000)
        && !is_spoken_of(&lower)
        && !NAMING.iter().any(|part| lower.contains(part))
        && !is_name(word)
}

/// True if these words may be a phrase that lets in.
pub(super) fn may_be_phrase(words: &str) -> bool {
    let lower = words.to_lowercase();
    let words = lower.split_whitespace();
    let said = words.clone().filter(|word| is_in(NO_PASSWORDS, word)).count();
    words.clone().count() >= 3 && said * 2 < words.count()
}

/// True if more than a third of the parts say something about a password.
fn is_spoken_of(lower: &str) -> bool {
    let parts = lower.split(['-', '_']);
    let said = parts.clone().filter(|part| is_in(NO_PASSWORDS, part)).count();
    said * 3 > parts.count()
}

/// True for `userPassword` and `SecretText`, and not for `Swordfish` and letters drawn by chance.
fn is_name(word: &str) -> bool {
    let mut humps = 1;
    let mut length = 0;
    for c in word.chars() {
        if c.is_uppercase() && length > 0 {
            if length < 3 {
                return false;
            }
            humps += 1;
            length = 0;
        }
        length += 1;
    }
    humps > 1 && length >= 3
}

/// The same of a word after a verb, which may say how the password is.
pub(super) fn may_be_said(word: &str) -> bool {
    may_be_password(word) && !SAID_OF_THINGS.iter().any(|end| word.to_lowercase().ends_with(end))
}

/// True if a value that ends before `rest` stands alone, so that it is said and not spoken of.
pub(super) fn ends_alone(rest: &str) -> bool {
    let mut letters = rest.chars();
    let Some(next) = letters.next() else { return true };
    let after = letters.as_str();
    let at_end = |text: &str| text.is_empty() || text.starts_with(char::is_whitespace);
    match next {
        '\n' | '\r' => true,
        '.' | '!' | '?' => at_end(after),
        // In code, a list of arguments or fields goes on; in prose, a sentence.
        ',' | ';' => goes_on(after),
        ')' | '"' | '\'' | '`' | '*' | '”' | '»' | '。' | '，' | '、' => true,
        ' ' | '\t' => {
            let after = after.trim_start_matches([' ', '\t']);
            let word = after.split(char::is_whitespace).next().unwrap_or_default();
            !after.starts_with(|c: char| c.is_alphanumeric() || "([{=.!?<>&|+:".contains(c))
                || is_in(PREPOSITIONS, &word.to_lowercase())
                || word.starts_with(char::is_alphabetic) && word.contains('=')
        }
        _ => false,
    }
}

/// True if a word of prose follows, or another pair of a name and a value.
fn goes_on(after: &str) -> bool {
    let Some(after) = after.strip_prefix(' ') else { return false };
    let word = after.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let end = &after[word.len()..];
    let line = after.lines().next().unwrap_or_default();
    let is_pair = end.starts_with(':') && !line.contains([')', '}']);
    !word.is_empty()
        && is_wordy(word)
        && (is_pair || end.is_empty() || end.starts_with([' ', '.', '!', '=']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_people_choose_are_told_from_words_about_passwords() {
        for word in
            ["swordfish", "Sesame", "hunter", "correct-horse-battery", "SWORDFISH", "пятница"]
        {
            assert!(may_be_password(word), "{word}");
        }
        for word in
            ["String", "required", "userPassword", "bcrypt", "muss", "SecretText", "abc", "必須"]
        {
            assert!(!may_be_password(word), "{word}");
        }
        assert!(may_be_said("swordfish") && !may_be_said("compromised"));
    }

    #[test]
    fn a_value_stands_alone_where_no_sentence_about_it_goes_on() {
        for rest in
            ["", "\nhost: x", ". Then", " for the staging box", ", then restart it", ")", " # note"]
        {
            assert!(ends_alone(rest), "{rest:?}");
        }
        for rest in
            [" contain one digit", ",", "(x)", ".value", ", host: h }", ": String", " field is red"]
        {
            assert!(!ends_alone(rest), "{rest:?}");
        }
    }
}
