//! A link for a browser, which a server gives to the bearer of a token.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, StatusCode};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client as Http;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

use super::{CONNECT_TIMEOUT, Client, ClientError};

/// Path of the request.
pub const LINK: &str = "/login/link";
const LARGEST: usize = 64 * 1024;

impl Client {
    /// A link that logs a browser in as the bearer of this client's token, once.
    pub async fn link(&self) -> Result<String, ClientError> {
        let failed = |detail: &dyn ToString| ClientError::Unreachable {
            address: self.address.clone(),
            detail: detail.to_string(),
        };
        let strange = |detail: &dyn ToString| ClientError::NotAServer {
            address: self.address.clone(),
            detail: detail.to_string(),
        };
        let connector = HttpsConnectorBuilder::new().with_native_roots();
        let connector =
            connector.map_err(|error| failed(&error))?.https_or_http().enable_http1().build();
        let mut request =
            Request::builder().method(Method::POST).uri(format!("{}{LINK}", self.address));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from_static(b"{}")));
        let request = request.map_err(|error| strange(&error))?;
        let asked = Http::builder(TokioExecutor::new()).build(connector).request(request);
        let answer = timeout(CONNECT_TIMEOUT, asked).await;
        let answer = answer.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => {
                return Err(ClientError::BadToken { address: self.address.clone() });
            }
            status => return Err(strange(&format!("it answers {status} where links are given"))),
        }
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        let body = body.map_err(|error| strange(&error))?.to_bytes();
        let reply: Value = serde_json::from_slice(&body).map_err(|error| strange(&error))?;
        reply["link"].as_str().map(str::to_owned).ok_or_else(|| strange(&"it gives no link"))
    }
}
