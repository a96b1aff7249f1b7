//! Texts that may be Markdown. Raw HTML is shown as it is written, links lead to http and https
//! only, and pictures are links: a page loads nothing from elsewhere.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

/// Most bytes that are read as Markdown; a longer text is shown as it is.
const MOST: usize = 64 * 1024;
/// Most quotations in each other that are moved to the right.
const NESTED: usize = 6;
/// Where columns are aligned.
const PLACES: [&str; 3] = ["left", "center", "right"];

pub(in crate::web) fn html(text: &str) -> Markup {
    if text.len() > MOST {
        return html! { div.plain { (text) } };
    }
    let mut open = Open::default();
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(text, options).map(|event| open.harmless(event));
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    // Only the renderer writes `<`: in texts it is escaped.
    for (cell, place) in ["th", "td"].into_iter().flat_map(|cell| PLACES.map(|place| (cell, place)))
    {
        let style = format!("<{cell} style=\"text-align: {place}\">");
        html = html.replace(&style, &format!("<{cell} class=\"{place}\">"));
    }
    PreEscaped(html)
}

/// What is open while a text is read.
#[derive(Default)]
struct Open {
    /// Whether the links are shown.
    links: Vec<bool>,
    quotations: usize,
}

impl Open {
    /// The event without what a browser would obey, or what would leave no room for the text.
    fn harmless<'t>(&mut self, event: Event<'t>) -> Event<'t> {
        let links = &mut self.links;
        match event {
            Event::Start(Tag::BlockQuote(_)) => {
                self.quotations += 1;
                if self.quotations > NESTED {
                    Event::InlineHtml(CowStr::Borrowed(""))
                } else {
                    event
                }
            }
            Event::End(TagEnd::BlockQuote(_)) => {
                self.quotations -= 1;
                if self.quotations >= NESTED {
                    Event::InlineHtml(CowStr::Borrowed(""))
                } else {
                    event
                }
            }
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(leads_out(&dest_url));
                opened(&dest_url, leads_out(&dest_url))
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let end = if links.pop() == Some(true) { "</a>" } else { "" };
                Event::InlineHtml(CowStr::Borrowed(end))
            }
            // The page's own headings make its outline.
            Event::Start(Tag::Heading { .. }) => {
                Event::Html(CowStr::Borrowed("<p class=\"label\">"))
            }
            Event::End(TagEnd::Heading(_)) => Event::Html(CowStr::Borrowed("</p>\n")),
            Event::TaskListMarker(done) => {
                Event::Text(CowStr::Borrowed(if done { "☑ " } else { "☐ " }))
            }
            other => other,
        }
    }
}

fn opened<'t>(address: &str, is_shown: bool) -> Event<'t> {
    let tag = html! { a href=(address) rel="noopener noreferrer" target="_blank" {} }.into_string();
    let tag = if is_shown { tag.trim_end_matches("</a>").to_owned() } else { String::new() };
    Event::InlineHtml(CowStr::from(tag))
}

fn leads_out(address: &str) -> bool {
    let address = address.to_ascii_lowercase();
    address.starts_with("https://") || address.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_shown_and_nothing_is_obeyed() {
        for (text, expected) in [
            ("# A\nb *c*", "<p class=\"label\">A</p>\n<p>b <em>c</em></p>\n"),
            ("a <b>x</b>", "<p>a &lt;b&gt;x&lt;/b&gt;</p>\n"),
            ("<script>x</script>\n", "<p>&lt;script&gt;x&lt;/script&gt;\n</p>\n"),
            (
                "[a](https://x.y/?a=1&b=\"2)",
                "<p><a href=\"https://x.y/?a=1&amp;b=&quot;2\" rel=\"noopener noreferrer\" target=\"_blank\">a</a></p>\n",
            ),
            ("[a](javascript:alert(1))", "<p>a</p>\n"),
            ("[a](JAVASCRIPT:x) ![b](data:x)", "<p>a b</p>\n"),
            (
                "![p](http://x/y.png)",
                "<p><a href=\"http://x/y.png\" rel=\"noopener noreferrer\" target=\"_blank\">p</a></p>\n",
            ),
            ("<javascript:x>", "<p>javascript:x</p>\n"),
            (
                "|a|b|\n|--:|:-:|\n|1|\" style=\"text-align: left\"|\n",
                "<table><thead><tr><th class=\"right\">a</th><th class=\"center\">b</th></tr></thead><tbody>\n<tr><td class=\"right\">1</td><td class=\"center\">\" style=\"text-align: left\"</td></tr>\n</tbody></table>\n",
            ),
            ("- [x] a", "<ul>\n<li>☑ a</li>\n</ul>\n"),
        ] {
            assert_eq!(html(text).into_string(), expected, "{text}");
        }
    }

    #[test]
    fn quotations_in_each_other_leave_room_for_the_text() {
        let html = html(&format!("{} deep\n\nafter", "> ".repeat(200))).into_string();
        assert_eq!(html.matches("<blockquote>").count(), NESTED, "{html}");
        assert_eq!(html.matches("</blockquote>").count(), NESTED, "{html}");
        assert!(html.contains("<p>deep</p>") && html.ends_with("<p>after</p>\n"), "{html}");
    }

    #[test]
    fn a_text_without_end_is_shown_as_it_is() {
        let long = "[".repeat(MOST + 1);
        assert!(html(&long).into_string().starts_with("<div class=\"plain\">[["));
    }
}
