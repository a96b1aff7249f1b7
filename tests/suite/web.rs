//! The pages of `callboard serve` as browsers see them.

mod actions;
mod addresses;
mod chromium;
mod command;
mod door;
mod heavy;
mod live;

use serde_json::Value;

use crate::harness::http::{Answer, Request, Server};

/// What browsers say that they accept when a person opens a page.
const PAGES: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// A browser at the pages' own address, with its cookie once it has logged in.
struct Browser<'s> {
    server: &'s Server,
    host: String,
    cookie: Option<String>,
}

impl<'s> Browser<'s> {
    fn at(server: &'s Server) -> Self {
        let link = server.announced["link"].as_str().unwrap();
        let (host, _) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
        Self { server, host: host.to_owned(), cookie: None }
    }

    /// A browser that was logged in with the link that the server printed.
    #[track_caller]
    fn logged_in(server: &'s Server) -> Self {
        let code = code_of(&server.announced["link"]);
        let mut browser = Self::at(server);
        let answer = browser.log_in(&code);
        assert_eq!(answer.status, 303, "{}", answer.text());
        browser
    }

    /// A request without a token, from this browser.
    fn request(&self, method: &str, path: &str) -> Request {
        let request = self.server.request(method, path).without("Authorization");
        let request = request.header("Host", &self.host).header("Accept", PAGES);
        match &self.cookie {
            Some(cookie) => request.header("Cookie", cookie),
            None => request,
        }
    }

    /// A form as a page of this origin sends it.
    fn form(&self, path: &str, fields: &[(&str, &str)]) -> Request {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.request("POST", path)
            .header("Origin", &format!("http://{}", self.host))
            .header("Sec-Fetch-Site", "same-origin")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .with_body(body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Answer {
        self.server.ask(&self.request("GET", path))
    }

    #[track_caller]
    fn log_in(&mut self, code: &str) -> Answer {
        let answer = self.server.ask(&self.form("/login", &[("code", code)]));
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = cookie.split(';').next().map(str::to_owned);
        }
        answer
    }
}

fn code_of(link: &Value) -> String {
    link.as_str().unwrap().split_once("/login#").unwrap().1.to_owned()
}
