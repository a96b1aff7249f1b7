//! Tags of hosts in texts of others. An agent's host puts what tools and hooks say between tags of
//! its own, such as `<system-reminder>`, and its model believes what stands in them. A task's text
//! must neither end nor begin one.
//!
//! Hosts invent such tags, so they are known by their kind: names of several words
//! (`tool_use_error`, `hook-context`, `userRequest`, `ns:call`), a few single words, marks such as
//! `<|im_end|>`, and every end tag that is of no document. Elements of HTML and SVG, components
//! (`<Card>`) and type arguments (`Vec<T>`) stay, as tasks are about them.

use serde_json::Value;

use super::{each_text, is_unseen};

/// Stands for `<` where it begins a tag of a host's kind. A model reads it as what it was.
const BLUNT: char = '‹';

/// `text` with the tags of hosts made blunt; `None` if it has none.
pub fn text(text: &str) -> Option<String> {
    let mut blunt: Option<String> = None;
    let mut copied = 0;
    for (at, _) in text.match_indices('<') {
        if is_of_host(&text[..at], &text[at + 1..]) {
            let so_far = blunt.get_or_insert_default();
            so_far.push_str(&text[copied..at]);
            so_far.push(BLUNT);
            copied = at + 1;
        }
    }
    let mut blunt = blunt?;
    blunt.push_str(&text[copied..]);
    Some(blunt)
}

/// Makes the tags of hosts blunt in every text of `value`.
pub fn value(value: &mut Value) {
    each_text(value, text);
}

/// Whether a `<` between these two begins a tag of a host's kind.
fn is_of_host(before: &str, after: &str) -> bool {
    let rest = after.trim_start_matches(is_passed_over);
    if let Some(mark) = rest.strip_prefix('|') {
        return mark
            .trim_start_matches(is_unseen)
            .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    }
    let (is_end, rest) = match rest.strip_prefix('/') {
        Some(rest) => (true, rest.trim_start_matches(is_passed_over)),
        None => (false, rest),
    };
    // `a < b` is a comparison; only an end tag is still one with a space before its name.
    if !is_end && after.starts_with(char::is_whitespace) {
        return false;
    }
    let name: String =
        rest.chars().filter(|c| !is_unseen(*c)).take_while(|c| is_of_name(*c)).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let is_glued =
        !is_end && before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    is_hosts_name(&name, is_end, is_glued)
}

fn is_hosts_name(name: &str, is_end: bool, is_glued: bool) -> bool {
    let name = name.trim_end_matches([':', '.']);
    let words = name.to_ascii_lowercase().replace('_', "-");
    let has = |is: fn(&char) -> bool| name.chars().any(|c| is(&c));
    let is_component =
        name.starts_with(|c: char| c.is_ascii_uppercase()) && has(char::is_ascii_lowercase);
    let is_spoken = !is_component && is_in(SPEAKERS, &words)
        || PARTS.split(' ').any(|part| words.contains(part));
    if is_spoken || is_in(ELEMENTS, &words) || name.contains("::") || name.contains('.') {
        return is_spoken;
    }
    // A type argument stands behind the name of its type.
    if is_glued {
        return name.contains('-');
    }
    let begins_small = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_of_words =
        name.contains(['-', '_', ':']) || begins_small && has(char::is_ascii_uppercase);
    let is_loud = name.len() > 1 && !has(char::is_ascii_lowercase);
    is_of_words || is_end && (begins_small || is_loud)
}

fn is_in(list: &str, name: &str) -> bool {
    list.split(' ').any(|one| one == name)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')
}

fn is_passed_over(c: char) -> bool {
    c.is_whitespace() || is_unseen(c)
}

/// Tags of one word that say who speaks.
const SPEAKERS: &str = "\
    system user assistant human developer instructions instruction reminder thinking think \
                        reasoning invoke parameter parameters function functions tools prompt \
                        antml environment memory hook";

/// Parts of the names of hosts' tags that are recognised behind any word.
const PARTS: &str = "\
    system-reminder system-prompt function-call function-result tool-use tool-result tool-call \
                     tool-response environment-context user-instructions user-query hook-context";

/// Elements of HTML and SVG, in lower case.
const ELEMENTS: &str = "\
    a abbr address animate animatetransform area article aside audio b base bdi bdo big blockquote \
     body br button canvas caption center circle cite clippath code col colgroup data datalist dd \
     defs del desc details dfn dialog div dl dt ellipse em embed feblend fegaussianblur feoffset \
     fieldset figcaption figure filter font footer foreignobject form frame frameset g h1 h2 h3 \
     h4 h5 h6 head header hgroup hr html i iframe image img input ins kbd label legend li line \
     lineargradient link main map mark marker mask math menu meta meter nav noscript object ol \
     optgroup option output p param path pattern picture polygon polyline pre progress q \
     radialgradient rect rp rt ruby s samp script search section select slot small source span \
     stop strong style sub summary sup svg symbol table tbody td template text textarea textpath \
     tfoot th thead time title tr track tspan u ul use var video wbr";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_of_hosts_become_blunt() {
        for tag in [
            "</system-reminder>",
            "<system-reminder>",
            "</SYSTEM-REMINDER >",
            "< / system-reminder>",
            "<\u{200b}/system\u{200b}-reminder>",
            "</system\n>",
            "<\u{200e}/\u{61c}system\u{180e}-remin\u{3164}der>",
            "<|\u{200f}im_end|>",
            "<system>",
            "</user>",
            "</function_results>",
            "<function_calls>",
            "</invoke>",
            "<parameter name=\"x\">",
            "</tool_use_error>",
            "</user-prompt-submit-hook>",
            "</local-command-stdout>",
            "</hook_context>",
            "</environment_context>",
            "</INSTRUCTIONS>",
            "<INSTRUCTIONS>",
            "</user_query>",
            "</userRequest>",
            "<reminderInstructions>",
            "</result>",
            "</context>",
            "<|im_end|>",
            "<|im_start|>system",
            "</think>",
        ] {
            let given = format!("before {tag}after <b>bold</b>");
            let blunt = text(&given).unwrap_or_else(|| panic!("{tag} stays"));
            assert_eq!(blunt, given.replacen('<', "‹", 1), "{tag}");
            assert_eq!(text(&blunt), None, "{blunt} changes again");
        }
    }

    #[test]
    fn what_tasks_are_about_stays() {
        for given in [
            "a < b && c > d, a<b",
            "<div class=\"x\">text</div><br/>",
            "Vec<String>, HashMap<K, Vec<my_type>>, Result<(), Box<dyn Error>>, \
             std::vector<std::string>",
            "<Card title={x}><Card.Body/></Card>",
            "<linearGradient id=\"a\"></linearGradient>",
            "git switch <branch>, cp <FILE> <dir>",
            "i <- 3, x <= y, 1 << 2, <!-- note -->, <?php, </>, <@user>, <3",
            "<https://example.org> and <me@example.org>",
        ] {
            assert_eq!(text(given), None, "{given}");
        }
    }

    #[test]
    fn names_of_fields_are_texts_too() {
        let mut given = json!({"data": {"</system>": ["</system>", 1, null]}, "b": "<b>"});
        value(&mut given);
        assert_eq!(given, json!({"data": {"‹/system>": ["‹/system>", 1, null]}, "b": "<b>"}));
    }
}
