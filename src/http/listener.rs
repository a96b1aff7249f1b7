//! Where the server listens.
//!
//! The pages are at a host name below `localhost`. Browsers look for such a name at 127.0.0.1 and
//! at [::1], and may try either first. The server therefore takes both: another process on the one
//! that is left would get what a person's browser sends.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::select;

use crate::state::limit::CONNECTIONS;

/// Most free ports that are tried until both addresses have the same.
const TRIES: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{address} is not on this machine only; whoever can reach it needs just the token, and \
         the traffic is not encrypted. Pass --allow-remote if that is meant, and --allow-host \
         NAME for each name that clients use"
    )]
    Remote { address: SocketAddr },
    /// Has no `source`, as the message contains it.
    #[error(
        "cannot listen on {address}: {reason}; is another server there? Choose a port with \
         --listen"
    )]
    Failed { address: SocketAddr, reason: io::Error },
    /// The same, for the address that was not asked for.
    #[error(
        "cannot listen on {address}, where browsers may look for the pages, too: {reason}; is \
         another server there? Choose a port with --listen"
    )]
    FailedTwin { address: SocketAddr, reason: io::Error },
}

/// The sockets of a server.
#[derive(Debug)]
pub struct Listener {
    /// At the address that was asked for.
    first: TcpListener,
    /// At the other one where browsers look.
    twin: Option<TcpListener>,
}

/// Binds the address, which other machines may reach only with `allow_remote`, and the other one
/// where browsers look for the pages. Must be called within a tokio runtime.
///
/// # Errors
/// If other machines could reach the address but must not, or if one of the two is in use.
pub fn listen(address: SocketAddr, allow_remote: bool) -> Result<Listener, ListenError> {
    if !address.ip().is_loopback() && !allow_remote {
        return Err(ListenError::Remote { address });
    }
    both(address, bind)
}

/// Whether a server could listen on the address.
pub fn is_free(address: SocketAddr) -> bool {
    let bound = |address: SocketAddr| std::net::TcpListener::bind(address);
    let twin = twin(address).map(bound);
    bound(address).is_ok() && twin.is_none_or(|twin| twin.map_or_else(|e| is_absent(&e), |_| true))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    // A long backlog, so that no client of many at once has to retry a second later.
    socket.listen(u32::try_from(CONNECTIONS.max).unwrap_or(u32::MAX))
}

fn both(
    address: SocketAddr,
    bind: impl Fn(SocketAddr) -> io::Result<TcpListener>,
) -> Result<Listener, ListenError> {
    let failed = |reason| ListenError::Failed { address, reason };
    // Kept until the end, so that no port is offered twice.
    let mut passed_over = Vec::new();
    loop {
        let first = bind(address).map_err(failed)?;
        let Some(twin) = twin(first.local_addr().map_err(failed)?) else {
            return Ok(Listener { first, twin: None });
        };
        match bind(twin) {
            Ok(twin) => return Ok(Listener { first, twin: Some(twin) }),
            Err(reason) if is_absent(&reason) => {
                tracing::info!(address = %twin, "this machine has no such address: none listens there");
                return Ok(Listener { first, twin: None });
            }
            Err(reason) => {
                let may_choose = address.port() == 0 && reason.kind() == ErrorKind::AddrInUse;
                if !may_choose || passed_over.len() == TRIES {
                    return Err(ListenError::FailedTwin { address: twin, reason });
                }
                passed_over.push(first);
            }
        }
    }
}

/// The other address at which browsers look for a server that listens on this one.
fn twin(address: SocketAddr) -> Option<SocketAddr> {
    let ip: IpAddr = match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        // The unspecified address of IPv6 stands for those of IPv4, too.
        _ => return None,
    };
    Some(SocketAddr::new(ip, address.port()))
}

/// Whether the machine does not have the address, so that no other process can listen there.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

impl Listener {
    /// The address that was asked for, with the port that was chosen.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.first.local_addr()
    }

    /// The next connection to any of the addresses.
    pub(super) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.twin {
            None => self.first.accept().await,
            Some(twin) => select! {
                accepted = self.first.accept() => accepted,
                accepted = twin.accept() => accepted,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn browsers_look_at_both_loopback_addresses() {
        for (one, other) in [
            ("127.0.0.1:8425", Some("[::1]:8425")),
            ("[::1]:1", Some("127.0.0.1:1")),
            ("0.0.0.0:8425", Some("[::1]:8425")),
            ("[::]:8425", None),
            ("127.0.0.2:8425", None),
            ("10.0.0.7:8425", None),
        ] {
            assert_eq!(twin(address(one)), other.map(address), "{one}");
        }
    }

    /// Binds as always, but fails with `errno` at [::1].
    fn without_ipv6(errno: Errno) -> impl Fn(SocketAddr) -> io::Result<TcpListener> {
        move |address| if address.is_ipv6() { Err(errno.into()) } else { bind(address) }
    }

    #[tokio::test]
    async fn machine_without_ipv6_has_one_address() {
        for errno in [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT] {
            let listener = both(address("127.0.0.1:0"), without_ipv6(errno)).unwrap();
            assert!(listener.twin.is_none(), "{errno}");
            let port = listener.local_addr().unwrap().port();
            assert_ne!(port, 0);
            let (client, server) =
                tokio::join!(TcpStream::connect(("127.0.0.1", port)), listener.accept());
            assert_eq!(client.unwrap().local_addr().unwrap(), server.unwrap().1);
        }
    }

    #[tokio::test]
    async fn another_port_is_taken_only_where_any_will_do() {
        let taken = std::cell::Cell::new(0);
        let first_are_taken = |address: SocketAddr| {
            if address.is_ipv6() && taken.get() < 3 {
                taken.set(taken.get() + 1);
                return Err(Errno::ADDRINUSE.into());
            }
            bind(address)
        };
        both(address("127.0.0.1:0"), first_are_taken).unwrap();
        assert_eq!(taken.get(), 3);
        for (errno, wanted) in [(Errno::ADDRINUSE, TRIES + 1), (Errno::ACCESS, 1)] {
            let asked = std::cell::Cell::new(0);
            let refusing = |address: SocketAddr| {
                asked.set(asked.get() + usize::from(address.is_ipv6()));
                without_ipv6(errno)(address)
            };
            let refused = both(address("127.0.0.1:0"), refusing).unwrap_err();
            assert!(refused.to_string().starts_with("cannot listen on [::1]:"), "{refused}");
            assert_eq!(asked.get(), wanted, "{errno}");
        }
    }
}
