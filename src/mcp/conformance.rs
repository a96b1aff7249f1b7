//! Fixtures that the MCP conformance suite calls: tools, resources and prompts with known answers.
//! The real server answers everything else. Exists only with the cargo feature `conformance`, which
//! is for tests.

mod rounds;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, CustomRequest,
    CustomResult, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, Prompt, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Reference, Resource, ResourceContents,
    ResourceTemplate, ServerCapabilities, ServerConfig, ServerNotification, ServerRequest,
    SetLevelRequestMethod, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
#[expect(deprecated, reason = "revisions before 2026-07-28 have them")]
use rmcp::model::{LoggingLevel, SetLevelRequestParams};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::select;
use tokio::sync::broadcast;
use tokio::time::sleep;

use super::server::{Server, is_modern};
use rounds::{Next, Rounds};

/// Pause between two notifications of one call: the suite wants to see them arrive one by one.
const STEP: Duration = Duration::from_millis(50);
const WATCHED: &str = "test://watched-resource";

type Request = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;
type Answer<T> = Result<T, ErrorData>;

#[derive(Clone)]
pub struct Fixtures {
    server: Server,
    known: Arc<Known>,
    rounds: Rounds,
    changes: broadcast::Sender<List>,
}

#[derive(Clone, Copy)]
enum List {
    Tools,
    Prompts,
}

/// Content of `fixtures.json`. `{name}` in a text stands for an argument.
#[derive(Deserialize)]
struct Known {
    tools: Vec<Tool>,
    /// Content of a result, by the name of the tool with that fixed answer.
    results: HashMap<String, Value>,
    /// Request to the client, by the name of the tool that sends it, in revisions where a server
    /// may.
    questions: HashMap<String, Value>,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
    /// Content by URI or URI template.
    contents: HashMap<String, Value>,
    prompts: Vec<Prompt>,
    messages: HashMap<String, Vec<Value>>,
}

impl Fixtures {
    pub fn new(server: Server) -> Self {
        let known = serde_json::from_str(include_str!("conformance/fixtures.json"))
            .expect("the fixtures are sound");
        Self {
            server,
            known: Arc::new(known),
            rounds: Rounds::new(),
            changes: broadcast::channel(16).0,
        }
    }

    async fn call_fixture(
        &self,
        call: &CallToolRequestParams,
        request: &Request,
    ) -> Answer<Option<CallToolResponse>> {
        let arguments = call.arguments.clone().unwrap_or_default();
        if let Some(result) = self.known.results.get(&*call.name) {
            return Ok(Some(CallToolResult::success(typed(result.clone())?).into()));
        }
        if let Some(question) = self.known.questions.get(&*call.name) {
            let answer = ask(filled(question, &arguments), request).await?;
            return Ok(Some(text(format!("the client answered {answer}"))));
        }
        let done = match &*call.name {
            "test_tool_with_progress" => {
                for progress in [0.0, 50.0, 100.0] {
                    report(progress, request).await?;
                    sleep(STEP).await;
                }
                "reported three times"
            }
            "test_tool_with_logging" | "test_logging_tool" => {
                for message in
                    ["Tool execution started", "Tool processing data", "Tool execution completed"]
                {
                    log(message, request).await?;
                    sleep(STEP).await;
                }
                "logged three times"
            }
            "test_missing_capability" => {
                let sampling = || typed::<ClientCapabilities>(json!({"sampling": {}}));
                if request.client_capabilities().is_none_or(|client| client.sampling.is_none()) {
                    return Err(ErrorData::missing_required_client_capability(sampling()?));
                }
                "the client has what it takes"
            }
            "test_error_handling" => {
                let content =
                    ContentBlock::text("This tool intentionally returns an error for testing");
                return Ok(Some(CallToolResult::error(vec![content]).into()));
            }
            "test_trigger_tool_change" => self.change(List::Tools),
            "test_trigger_prompt_change" => self.change(List::Prompts),
            name => {
                if name == "test_streaming_elicitation" {
                    report(0.0, request).await?;
                }
                let (answers, state) =
                    (call.input_responses.as_ref(), call.request_state.as_deref());
                let next = self.rounds.next(name, answers, state, request)?;
                return Ok(next.map(|next| match next {
                    Next::Ask(questions) => questions.into(),
                    Next::Done(done) => text(done),
                }));
            }
        };
        Ok(Some(text(done)))
    }

    /// There may be no listener.
    fn change(&self, list: List) -> &'static str {
        let _ = self.changes.send(list);
        "said so"
    }

    fn content(&self, uri: &str) -> Answer<Option<ResourceContents>> {
        if let Some(content) = self.known.contents.get(uri) {
            return typed(content.clone()).map(Some);
        }
        for template in &self.known.templates {
            let template = &*template.uri_template;
            let inside = template.split_once("{id}").and_then(|(before, after)| {
                uri.strip_prefix(before)?
                    .strip_suffix(after)
                    .filter(|id| !id.is_empty() && !id.contains('/'))
            });
            if let (Some(id), Some(content)) = (inside, self.known.contents.get(template)) {
                let arguments = JsonObject::from_iter([("id".to_owned(), json!(id))]);
                return typed(filled(content, &arguments)).map(Some);
            }
        }
        Ok(None)
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.server.get_info();
        let own = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .build();
        info.capabilities.tools = own.tools;
        info.capabilities.prompts = own.prompts;
        info.capabilities.logging = Some(JsonObject::new());
        info
    }

    async fn initialize(
        &self,
        client: InitializeRequestParams,
        request: Request,
    ) -> Answer<InitializeResult> {
        let mut result = self.server.initialize(client, request).await?;
        result.capabilities = self.get_info().capabilities;
        Ok(result)
    }

    async fn list_tools(&self, page: Page, request: Request) -> Answer<ListToolsResult> {
        let mut result = self.server.list_tools(page, request).await?;
        result.tools.extend_from_slice(&self.known.tools);
        Ok(result)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.known
            .tools
            .iter()
            .find(|tool| tool.name == name)
            .cloned()
            .or_else(|| self.server.get_tool(name))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        request: Request,
    ) -> Answer<CallToolResponse> {
        match self.call_fixture(&call, &request).await? {
            Some(response) => Ok(response),
            None => self.server.call_tool(call, request).await,
        }
    }

    async fn list_resources(&self, page: Page, request: Request) -> Answer<ListResourcesResult> {
        let mut result = self.server.list_resources(page, request).await?;
        result.resources.extend_from_slice(&self.known.resources);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        page: Page,
        request: Request,
    ) -> Answer<ListResourceTemplatesResult> {
        let mut result = self.server.list_resource_templates(page, request).await?;
        result.resource_templates.extend_from_slice(&self.known.templates);
        Ok(result)
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        request: Request,
    ) -> Answer<ReadResourceResponse> {
        match self.content(&read.uri)? {
            Some(content) => Ok(ReadResourceResult::new(vec![content]).into()),
            None => self.server.read_resource(read, request).await,
        }
    }

    async fn list_prompts(&self, page: Page, request: Request) -> Answer<ListPromptsResult> {
        let mut result = self.server.list_prompts(page, request).await?;
        result.prompts.extend_from_slice(&self.known.prompts);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        prompt: GetPromptRequestParams,
        request: Request,
    ) -> Answer<GetPromptResponse> {
        if let Some(messages) = self.known.messages.get(&prompt.name) {
            let arguments = prompt.arguments.unwrap_or_default();
            let messages = messages
                .iter()
                .map(|message| typed(filled(message, &arguments)))
                .collect::<Answer<_>>()?;
            return Ok(GetPromptResult::new(messages).into());
        }
        let (answers, state) = (prompt.input_responses.as_ref(), prompt.request_state.as_deref());
        match self.rounds.next(&prompt.name, answers, state, &request)? {
            Some(Next::Ask(questions)) => Ok(questions.into()),
            Some(Next::Done(done)) => {
                let message = typed::<PromptMessage>(
                    json!({"role": "user", "content": {"type": "text", "text": done}}),
                )?;
                Ok(GetPromptResult::new(vec![message]).into())
            }
            None => self.server.get_prompt(prompt, request).await,
        }
    }

    async fn complete(
        &self,
        wanted: CompleteRequestParams,
        request: Request,
    ) -> Answer<CompleteResult> {
        let begun = &wanted.argument.value;
        match &wanted.r#ref {
            Reference::Prompt(prompt) if prompt.name == "test_prompt_with_arguments" => {
                let values = ["paris", "park", "party"]
                    .into_iter()
                    .filter(|value| value.starts_with(begun.as_str()));
                let values = CompletionInfo::new(values.map(str::to_owned).collect());
                values
                    .map(CompleteResult::new)
                    .map_err(|error| ErrorData::internal_error(error, None))
            }
            _ => self.server.complete(wanted, request).await,
        }
    }

    /// The fixtures log at a level that the suite never filters out, so the level is not kept.
    #[expect(deprecated, reason = "revisions before 2026-07-28 have it")]
    async fn set_level(&self, _: SetLevelRequestParams, request: Request) -> Answer<()> {
        if is_modern(&request) {
            Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
        } else {
            Ok(())
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = self.server.accepted_subscription_filter(requested).unwrap_or_default();
        accepted.tools_list_changed = requested.tools_list_changed;
        accepted.prompts_list_changed = requested.prompts_list_changed;
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Answer<()> {
        let (sink, changes) = (subscription.sink().clone(), self.changes.subscribe());
        select! {
            ended = self.server.listen(subscription) => ended,
            () = forward(changes, &sink) => Ok(()),
        }
    }

    #[expect(deprecated, reason = "revisions before 2026-07-28 have it")]
    async fn subscribe(&self, wanted: SubscribeRequestParams, request: Request) -> Answer<()> {
        if wanted.uri == WATCHED { Ok(()) } else { self.server.subscribe(wanted, request).await }
    }

    #[expect(deprecated, reason = "revisions before 2026-07-28 have it")]
    async fn unsubscribe(&self, wanted: UnsubscribeRequestParams, request: Request) -> Answer<()> {
        if wanted.uri == WATCHED { Ok(()) } else { self.server.unsubscribe(wanted, request).await }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.server.on_initialized(context).await;
    }

    async fn on_custom_request(
        &self,
        custom: CustomRequest,
        request: Request,
    ) -> Answer<CustomResult> {
        self.server.on_custom_request(custom, request).await
    }
}

/// Forwards changes until nobody listens any more.
async fn forward(mut changes: broadcast::Receiver<List>, sink: &SubscriptionSink) {
    loop {
        let sent = match changes.recv().await {
            Ok(List::Tools) if sink.accepted().tools_list_changed == Some(true) => {
                sink.notify_tool_list_changed().await
            }
            Ok(List::Prompts) if sink.accepted().prompts_list_changed == Some(true) => {
                sink.notify_prompt_list_changed().await
            }
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Sends a request to the client and returns its answer, which only revisions before 2026-07-28
/// allow.
async fn ask(question: Value, request: &Request) -> Answer<Value> {
    let question = typed::<ServerRequest>(question)?;
    let answer = select! {
        () = request.ct.cancelled() => return Err(failed("the request was cancelled")),
        answer = request.peer.send_request(question) => answer.map_err(failed)?,
    };
    serde_json::to_value(answer).map_err(failed)
}

/// Reports progress to a client that gave a token for it.
async fn report(progress: f64, request: &Request) -> Answer<()> {
    let Some(token) = request.meta.get_progress_token() else { return Ok(()) };
    let progress = ProgressNotificationParam::new(token, progress).with_total(100.0);
    request.peer.notify_progress(progress).await.map_err(failed)
}

/// Sends a log message; since 2026-07-28, only to clients that ask for it in the request.
async fn log(message: &str, request: &Request) -> Answer<()> {
    #[expect(deprecated, reason = "the suite tests it")]
    let is_wanted =
        matches!(request.meta.log_level(), Some(LoggingLevel::Debug | LoggingLevel::Info));
    if is_modern(request) && !is_wanted {
        return Ok(());
    }
    let params = json!({"level": "info", "logger": "conformance", "data": message});
    let notification =
        typed::<ServerNotification>(json!({"method": "notifications/message", "params": params}))?;
    request.peer.send_notification(notification).await.map_err(failed)
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

/// `value` with arguments filled into its texts.
fn filled(value: &Value, arguments: &JsonObject) -> Value {
    match value {
        Value::String(text) => arguments
            .iter()
            .filter_map(|(name, value)| Some((format!("{{{name}}}"), value.as_str()?)))
            .fold(text.clone(), |text, (place, value)| text.replace(&place, value))
            .into(),
        Value::Array(items) => items.iter().map(|item| filled(item, arguments)).collect(),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| (name.clone(), filled(value, arguments)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Answer<T> {
    serde_json::from_value(value).map_err(failed)
}

fn failed(error: impl ToString) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
