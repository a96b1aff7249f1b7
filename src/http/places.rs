//! Places for connections. A connection is silent until a token is presented on it. When all places
//! are taken, a silent connection is closed for a new one: the oldest of the peer that has most of
//! them. A peer that only connects can therefore keep out neither callers with a token nor others.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

pub(super) struct Places {
    limit: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// By number; a later connection has a greater one.
    seats: BTreeMap<u64, Arc<Seat>>,
    next: u64,
}

/// What is known of one connection.
pub(super) struct Seat {
    peer: IpAddr,
    is_admitted: AtomicBool,
    /// Cancelled when the connection has to make room.
    pub over: CancellationToken,
}

impl Seat {
    /// Notes that a good token has been presented.
    pub(super) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Relaxed);
    }

    fn is_silent(&self) -> bool {
        !self.is_admitted.load(Ordering::Relaxed)
    }
}

/// A place, which is free again when this is dropped.
pub(super) struct Place {
    pub seat: Arc<Seat>,
    number: u64,
    places: Arc<Places>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().seats.remove(&self.number);
    }
}

impl Places {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: Mutex::default() })
    }

    /// A place for a new connection of `peer`, and whether another had to make room. `None` if all
    /// are taken by connections with a token.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<(Place, bool)> {
        let mut taken = self.taken();
        let is_full = taken.seats.len() >= self.limit;
        if is_full {
            let leaving = taken.oldest_silent()?;
            taken.seats.remove(&leaving)?.over.cancel();
        }
        let number = taken.next;
        taken.next += 1;
        let (is_admitted, over) = (AtomicBool::new(false), CancellationToken::new());
        let seat = Arc::new(Seat { peer: network(peer), is_admitted, over });
        taken.seats.insert(number, Arc::clone(&seat));
        Some((Place { seat, number, places: Arc::clone(self) }, is_full))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn oldest_silent(&self) -> Option<u64> {
        let mut silent: HashMap<IpAddr, (usize, u64)> = HashMap::new();
        for (number, seat) in self.seats.iter().filter(|(_, seat)| seat.is_silent()) {
            silent.entry(seat.peer).or_insert((0, *number)).0 += 1;
        }
        let most = silent.into_values().max_by_key(|(count, oldest)| (*count, u64::MAX - oldest));
        most.map(|(_, oldest)| oldest)
    }
}

/// The address of a peer, or the network of an IPv6 one, which has as many addresses as it likes.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn oldest_silent_one_of_the_peer_with_most_makes_room() {
        let places = Places::new(4);
        let take = |from: &str| places.take(peer(from));
        let (quiet, _) = take("10.0.0.1").expect("room");
        let others: Vec<_> =
            ["2001:db8::1", "2001:db8::2", "2001:db8::3"].map(take).into_iter().flatten().collect();
        let (_new, made_room) = take("10.0.0.2").expect("room is made");
        assert!(made_room && others[0].0.seat.over.is_cancelled(), "the oldest of one network");
        let (_another, _) = take("2001:db8::4").expect("room is made");
        assert!(others[1].0.seat.over.is_cancelled() && !quiet.seat.over.is_cancelled());
    }

    #[test]
    fn those_with_a_token_keep_their_places() {
        let places = Places::new(2);
        let (first, _) = places.take(peer("::1")).expect("room");
        first.seat.admit();
        let (second, _) = places.take(peer("::1")).expect("room");
        let (third, _) = places.take(peer("::1")).expect("the silent one makes room");
        assert!(second.seat.over.is_cancelled() && !first.seat.over.is_cancelled());
        third.seat.admit();
        assert!(places.take(peer("::1")).is_none());
        // It has given its place up already.
        drop(second);
        assert!(places.take(peer("::1")).is_none());
        drop(first);
        assert!(places.take(peer("::1")).is_some());
    }
}
