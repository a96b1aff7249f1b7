//! What models pass as arguments over MCP is understood, or refused in a line that says what is
//! wanted.

mod slips;
mod wrong;
