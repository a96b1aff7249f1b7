// Preloaded into a client that asks its vendor for its newest version whatever it is told, past every proxy: it can look up
// no name but loopback's.

const dns = require('node:dns');

const { lookup } = dns;
dns.lookup = (host, ...rest) => {
  if (host === 'localhost') return lookup(host, ...rest);
  rest.at(-1)(Object.assign(new Error(`${host} is not on loopback`), { code: 'ENOTFOUND' }));
};
