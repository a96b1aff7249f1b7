//! The board as an MCP server: answers rmcp's requests from the list of operations. It knows no
//! transport.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, ContentBlock, CustomRequest, CustomResult, ErrorCode, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::select;
use tokio::time::sleep;

use super::elicitation::{Asked, Consent};
use super::resources::{self, Subject};
use super::subscriptions::{self, Session};
use super::tools::tool_list;
use super::{completions, prompts};
use crate::harmless::tags;
use crate::ops::{self, Listener, Reader, Toolset};
use crate::participant::{CallError, Caller, Handle};
use crate::state::State;
use crate::state::id::AgentId;

/// Clients cut this text at 2 kB, one of them at 512 characters, so the loop is in its first lines.
const INSTRUCTIONS: &str = include_str!("prompts/instructions.md");

/// Time for which lists may be cached. They never change within a process, but another version may
/// answer later.
const LIST_TTL_MS: u64 = 300_000;
/// Time for which the list of tasks may be cached, unless the client hears of changes.
const TASKS_TTL_MS: u64 = 5_000;

/// Clients, by how their names begin, whose models read both parts of a result: they get the text
/// alone, or each reply would cost twice. All others read one part; some of them only the
/// structured one, or make much of a result without it.
const READ_BOTH: [&str; 3] = [
    // Their models get the whole result as JSON.
    "cline",
    "@cline/",
    // The structured part becomes a field of the text block.
    "@langchain/mcp-adapters",
];

const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

const METHODS_WITH_PARAMS: [&str; 13] = [
    "initialize",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];

/// Those of the methods above that 2026-07-28 no longer has.
const METHODS_UNTIL_2025: [&str; 3] =
    ["initialize", "resources/subscribe", "resources/unsubscribe"];

pub(super) type Request = RequestContext<RoleServer>;
type Page = Option<PaginatedRequestParams>;
pub(super) type Answer<T> = Result<T, ErrorData>;

/// Error for a call that the client did not cancel itself: the process is ending.
const CANCELLED: &str =
    "the call was cancelled, and may have been carried out: look before you repeat it";

#[derive(Clone)]
pub struct Server {
    pub(super) handle: Handle,
    caller: Caller,
    tools: Arc<[Tool]>,
    reader: Reader,
    session: Session,
    /// Name of who uses the client, if that is somebody on this machine.
    pub(super) person: Option<Arc<str>>,
    pub(super) asked: Asked,
}

impl Server {
    /// The toolset hides tools but does not forbid them: a call by name reaches every operation.
    pub fn new(handle: Handle, caller: Caller, toolset: Toolset) -> Self {
        let tools = tool_list(toolset, !caller.names_agent()).into();
        Self {
            handle,
            caller,
            tools,
            reader: Reader::Model(toolset),
            session: Session::default(),
            person: None,
            asked: Asked::default(),
        }
    }

    /// The same server for clients that the person of this name uses.
    pub fn used_by(self, person: Option<Arc<str>>) -> Self {
        Self { person, ..self }
    }

    fn listener<'a>(&'a self, agent: Option<&'a AgentId>) -> Listener<'a> {
        let command = self.caller.command.as_deref();
        Listener { reader: self.reader, command, agent: agent.map(AgentId::as_str) }
    }

    /// Makes a call that ends when its request is cancelled; the outer error says so. Cancellation
    /// is checked first, so that a cancelled claim never takes a task.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Value,
        request: &Request,
    ) -> Answer<Result<Value, CallError>> {
        let caller = self.caller_of(request);
        select! {
            biased;
            () = request.ct.cancelled() => Err(ErrorData::internal_error(CANCELLED, None)),
            outcome = self.handle.call(name, arguments, &caller) => Ok(outcome),
            () = tell_progress(request) => Ok(Err(CallError::Gone)),
        }
    }

    pub(super) fn caller_of(&self, request: &Request) -> Caller {
        let http = request.extensions.get::<Parts>().map(|parts| &parts.extensions);
        let mut caller = http.and_then(|http| http.get::<Caller>()).unwrap_or(&self.caller).clone();
        caller.reader = self.reader;
        if let Some(client) = request.client_info() {
            caller.called_by(client.name, client.title);
        }
        caller
    }

    pub(super) async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&State) -> T + Send + 'static,
    ) -> Answer<T> {
        let looked = self.handle.look(read).await;
        looked.map_err(|error| ErrorData::internal_error(error.message(), Some(error.data())))
    }
}

/// Reports at intervals that the call is still waiting, if the client asked for it. Ends when it
/// cannot be sent.
async fn tell_progress(request: &Request) {
    let Some(token) = request.meta.get_progress_token() else { return pending().await };
    let start = Instant::now();
    loop {
        sleep(PROGRESS_INTERVAL).await;
        let seconds = start.elapsed().as_secs();
        let progress = ProgressNotificationParam::new(token.clone(), seconds as f64)
            .with_message(format!("waiting for {seconds} s"));
        if request.peer.notify_progress(progress).await.is_err() {
            return;
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_completions()
            .build();
        let callboard =
            Implementation::new("callboard", env!("CARGO_PKG_VERSION")).with_title("Callboard");
        ServerConfig::new(capabilities).with_server_info(callboard).with_instructions(INSTRUCTIONS)
    }

    /// Remembers the version that was agreed on, where rmcp would remember the requested one.
    async fn initialize(
        &self,
        mut client: InitializeRequestParams,
        request: Request,
    ) -> Answer<InitializeResult> {
        let result = self.negotiate_initialize(&client)?;
        client.protocol_version = result.protocol_version.clone();
        request.peer.set_peer_info(client);
        Ok(result)
    }

    async fn list_tools(&self, page: Page, request: Request) -> Answer<ListToolsResult> {
        refuse_cursor(page)?;
        let mut result = ListToolsResult::with_all_items(self.tools.to_vec());
        (result.ttl_ms, result.cache_scope) = list_caching(&request);
        Ok(result)
    }

    async fn call_tool(
        &self,
        mut call: CallToolRequestParams,
        request: Request,
    ) -> Answer<CallToolResponse> {
        if let Some(entry) = ops::find(&call.name)
            && let Ok(plain) = ops::unwrapped(entry, call.arguments.clone().into())
        {
            call.arguments = Some(plain);
        }
        let agent = call.arguments.as_ref().and_then(|given| given.get("agent_id")?.as_str());
        // Only a valid id may get into a command.
        let agent = agent.and_then(|id| AgentId::checked(id).ok());
        match self.consent(&call, &request).await? {
            Consent::Given => {}
            Consent::Wanted(question) => return Ok(question.into()),
            Consent::Refused(error) => {
                return Ok(refused(&error, &self.listener(agent.as_ref())).into());
            }
        }
        if let Some(question) = self.ask_there(&call, &request).await? {
            return Ok(question);
        }
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        match self.call(&call.name, arguments, &request).await? {
            Ok(reply) => Ok(once(CallToolResult::structured(reply), &request).into()),
            Err(CallError::UnknownOperation(name)) => {
                let text = ops::no_operation("tool", &name);
                Err(ErrorData::invalid_params(
                    self.listener(agent.as_ref()).reworded(&text).into_owned(),
                    None,
                ))
            }
            Err(error) => {
                let refused = refused(&error, &self.listener(agent.as_ref()));
                Ok(once(refused, &request).into())
            }
        }
    }

    async fn list_resources(&self, page: Page, request: Request) -> Answer<ListResourcesResult> {
        refuse_cursor(page)?;
        let mut result = ListResourcesResult::with_all_items(self.look(resources::list).await?);
        // Its tasks change, and concern only this client.
        (result.ttl_ms, result.cache_scope) =
            is_modern(&request).then_some((TASKS_TTL_MS, CacheScope::Private)).unzip();
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        page: Page,
        request: Request,
    ) -> Answer<ListResourceTemplatesResult> {
        refuse_cursor(page)?;
        let mut result = ListResourceTemplatesResult::with_all_items(resources::templates());
        (result.ttl_ms, result.cache_scope) = list_caching(&request);
        Ok(result)
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        request: Request,
    ) -> Answer<ReadResourceResponse> {
        let uri = read.uri;
        let not_found =
            |text: String| ErrorData::resource_not_found(text, Some(json!({"uri": uri})));
        let Some(subject) = Subject::of(&uri) else {
            return Err(not_found(format!("there is no resource `{uri}`; ask resources/list")));
        };
        let (operation, arguments) = subject.operation();
        match self.call(operation, arguments, &request).await? {
            Ok(reply) => {
                let content =
                    ResourceContents::text(reply.to_string(), uri).with_mime_type(resources::JSON);
                Ok(ReadResourceResult::new(vec![content]).into())
            }
            Err(error @ CallError::Refused(_)) => {
                Err(not_found(self.listener(None).reworded(&error.message()).into_owned()))
            }
            Err(error) => Err(ErrorData::internal_error(error.message(), Some(error.data()))),
        }
    }

    async fn list_prompts(&self, page: Page, request: Request) -> Answer<ListPromptsResult> {
        refuse_cursor(page)?;
        let mut result = ListPromptsResult::with_all_items(prompts::list());
        (result.ttl_ms, result.cache_scope) = list_caching(&request);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        prompt: GetPromptRequestParams,
        _: Request,
    ) -> Answer<GetPromptResponse> {
        let arguments = prompt.arguments.unwrap_or_default();
        prompts::get(&prompt.name, &arguments).map(Into::into)
    }

    async fn complete(&self, request: CompleteRequestParams, _: Request) -> Answer<CompleteResult> {
        let completion = self.look(move |state| completions::complete(&request, state)).await??;
        Ok(CompleteResult::new(completion))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Answer<()> {
        subscriptions::run(&self.handle, &context).await
    }

    async fn subscribe(&self, resource: SubscribeRequestParams, request: Request) -> Answer<()> {
        self.session
            .subscribe(&self.handle, &resource.uri, &request.extensions, &request.peer)
            .await
    }

    async fn unsubscribe(
        &self,
        resource: UnsubscribeRequestParams,
        request: Request,
    ) -> Answer<()> {
        self.session.unsubscribe(&resource.uri, &request.extensions);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.session.open(&self.handle, &context.extensions, &context.peer);
    }

    /// rmcp treats a known method with invalid params as an unknown method.
    async fn on_custom_request(
        &self,
        custom: CustomRequest,
        request: Request,
    ) -> Answer<CustomResult> {
        let method = custom.method;
        let is_gone = is_modern(&request) && METHODS_UNTIL_2025.contains(&method.as_str());
        if METHODS_WITH_PARAMS.contains(&method.as_str()) && !is_gone {
            return Err(ErrorData::invalid_params(
                format!("the params are not those of {method}"),
                None,
            ));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("there is no method `{method}`"),
            None,
        ))
    }
}

/// The result without its structured part, if the client's model would read that, too.
fn once(mut result: CallToolResult, request: &Request) -> CallToolResult {
    let name = request.client_info().map(|client| client.name.to_lowercase()).unwrap_or_default();
    if READ_BOTH.iter().any(|client| name.starts_with(client)) {
        result.structured_content = None;
    }
    result
}

fn refused(error: &CallError, listener: &Listener) -> CallToolResult {
    let mut data = error.data();
    listener.reword(&mut data);
    tags::value(&mut data);
    let mut result = CallToolResult::error(vec![ContentBlock::text(
        data["message"].as_str().unwrap_or_default(),
    )]);
    // Before 2026-07-28, structured content is an object or absent.
    result.structured_content = Some(data).filter(Value::is_object);
    result
}

/// Every list has one page, so no cursor is ours.
fn refuse_cursor(page: Page) -> Answer<()> {
    match page.and_then(|page| page.cursor) {
        Some(_) => Err(ErrorData::invalid_params("unknown cursor: the list has one page", None)),
        None => Ok(()),
    }
}

/// How long, and by whom, a list may be cached. Revisions before 2026-07-28 have no such fields.
fn list_caching(request: &Request) -> (Option<u64>, Option<CacheScope>) {
    is_modern(request).then_some((LIST_TTL_MS, CacheScope::Public)).unzip()
}

pub(super) fn is_modern(request: &Request) -> bool {
    request.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

#[cfg(test)]
mod tests {
    use super::INSTRUCTIONS;

    #[test]
    fn instructions_tell_the_loop_in_what_every_client_reads() {
        assert!(INSTRUCTIONS.len() <= 2_000, "{} bytes", INSTRUCTIONS.len());
        let start: String = INSTRUCTIONS.chars().take(512).collect();
        let steps = ["register_agent", "claim_task", "heartbeat", "complete_task", "finished"];
        let places: Vec<_> =
            steps.iter().map(|step| start.find(step).unwrap_or_else(|| panic!("{step}"))).collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}
