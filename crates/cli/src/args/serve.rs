//! The flags of `fairbat serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint, value_parser};
use fairbat::http::host::HostPattern;
use fairbat::units::parse_size;

use super::shared::{LogArgs, SenderMethod};

// These groups have no doc comments: clap would show them as the help of the command.

#[derive(Debug, Args)]
#[command(
    about = "Serve a directory, and yield to other traffic if a client asks for it",
    long_about = "Serves the regular files below a directory over HTTP/1.1, whole or in ranges, \
        until a signal stops it.\n\n\
        A client can ask the server to yield. The server can do that better than a client, \
        because it sends the data. With an urgency of 6 or 7 in the header Priority (RFC 9218), \
        a response yields to all other traffic; fairbat get sends that header. With the header \
        Fairbat-Deadline, a response yields as far as its deadline allows. Other clients get \
        ordinary responses, unless --background is given.\n\n\
        Fairbat-Deadline is a dictionary (RFC 9651) with three keys: due is the time left in \
        seconds, remaining is the number of bytes still to move, and w is the lowest weight. An \
        example: due=3600, remaining=5000000000, w=0.02. fairbat get sends the header to servers \
        that answer with the header Fairbat: 1, as this one does. Each connection keeps to the \
        deadline by itself.\n\n\
        All files have the type application/octet-stream, so no browser displays them. A request \
        for several ranges gets the whole file.\n\n\
        If a file changes while it is sent, the response breaks off, so the client notices. A \
        file that never stops changing is answered with 503 and Retry-After. For a few seconds \
        after a change, a file has no ETag and no Last-Modified, so clients cannot resume it. \
        The header Repr-Digest (RFC 9530) carries the SHA-256 of a file once it is known. A \
        request with Want-Repr-Digest makes the server compute it, for later requests.\n\n\
        A request must name an IP address, localhost, or a name of --allow-host. Unless the \
        server listens on a loopback address, it also accepts the host name that this machine \
        had at the start, alone, with its domain, and with .local. Other names get 421: a web \
        page of such a name could otherwise read the files through the browser of somebody who \
        can (DNS rebinding). Behind a reverse proxy, add --allow-host with the public name, or \
        let the proxy send the server's own address in Host.\n\n\
        The server closes a connection whose client takes less than 1 KiB of a response in 60 s, \
        and an idle connection after 30 s. If a peer exceeds --max-connections-per-peer, a \
        few more of its connections are answered with 503 and Retry-After. The rest are closed \
        without an answer.\n\n\
        With --writable, the server also accepts PUT of a file. The answer is 201 for a new \
        file, or 204 for a replaced one, with its ETag. Before the answer, the file is \
        written to the disk. Until then, its data is in the directory .fairbat-upload, which is \
        never served. Missing directories are made. If-None-Match: * refuses to replace a file \
        (412), and If-Match replaces one version only. If the body does not match Content-Digest \
        or Repr-Digest (RFC 9530), the answer is 400. A full disk is 507. At most 64 uploads run \
        at once, and one peer gets at most as many as are left for others. Further uploads get \
        503 with Retry-After. An upload that sends less than 1 KiB in 60 s is dropped (408).\n\n\
        With --writable, a file may also come in parts, several at once: POST FILE?parts with \
        Content-Range: bytes */N for a file of N bytes is answered 201 with Location: ?parts=ID. \
        PUT of a part goes there with Content-Range: bytes A-B/N, in any order. POST there completes \
        the file, or is answered 409 with the missing bytes. POST to FILE?parts=ID&give-up gives it \
        up, as do 5 minutes without a request. Each of them counts as an upload. An unknown ID is a \
        404. Fairbat: 1;parts in an answer tells clients that parts are accepted.\n\n\
        With --writable, DELETE removes a file, a symbolic link or an empty directory. MOVE \
        renames a file to the name in Destination. With Overwrite: F, MOVE replaces nothing. \
        MKCOL makes a directory. If a name is a symbolic link, the link itself is replaced. \
        Nothing changes outside of DIR, or in a file system that is mounted below it.\n\n\
        With --writable, GET of a directory with Accept: application/json returns a JSON array. \
        Each entry is {\"name\", \"type\", \"size\", \"mtime\", \"etag\"}, in the byte order of \
        the names. The type is file or directory, the size is in bytes, and mtime is in seconds \
        since 1970. Directories have no size and no etag: both are null. A file that was just \
        changed has a null etag. A name that is not UTF-8 is percent-encoded, and its entry has \
        \"percent_encoded\": true. The query ?limit=N returns at most N entries. Add &after=NAME, \
        percent-encoded, for the entries after that name. A list of fewer than N entries is the \
        last one.\n\n\
        With -v, the server logs each request on standard error: the client's address, the \
        method, the path, the status, the bytes, and how the response was sent. For an upload, \
        it logs the bytes that were stored.\n\n\
        Each flag has an environment variable, and the command line wins. If a flag is given \
        twice, the last one counts, except --allow-host: all of its names count."
)]
pub(crate) struct ServeArgs {
    /// The directory to serve, with all directories below it
    ///
    /// All regular files are served, even if their names start with a dot. Symbolic links
    /// that stay within DIR are followed; others are not. Only --writable lists directories.
    /// Without it, a directory is not found.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// Listen on this address and port; port 0 picks a free one
    ///
    /// 0.0.0.0:8080 is every IPv4 address of this machine. [::]:8080 is every address. Host
    /// names are not accepted. The address in use is printed on standard error.
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:8080",
        value_parser = address
    )]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) sending: SendArgs,
    #[command(flatten)]
    pub(crate) uploads: UploadArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Print the address in use as a JSON line
    ///
    /// docs/json.md in the source describes it.
    #[arg(long, help_heading = "Messages")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Parses an address with an error that shows correct examples. clap's own error has none.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, as 127.0.0.1:8080 or [::]:8080; names are not taken"
            .to_owned()
    })
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Speed")]
pub(crate) struct SendArgs {
    /// Let a response yield unless its request asks for something else
    #[arg(long)]
    pub(crate) background: bool,

    /// Which congestion control yields to other traffic [default: vegas]
    ///
    /// Over TCP, this needs the congestion controls that root loads with fairbat setup. Without
    /// them, it changes nothing there.
    #[arg(long, value_name = "POLICY")]
    pub(crate) sender: Option<SenderMethod>,

    /// The maximum number of connections; further ones wait
    #[arg(
        short = 'x',
        long,
        value_name = "N",
        default_value_t = 512,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections: u32,

    /// The maximum number of connections of one peer; further ones are refused
    ///
    /// A peer is one IPv4 address or one IPv6 network of 64 bits. All clients behind one
    /// router or proxy are one peer. A few refused connections, 4 of one peer and 32 in all,
    /// get an answer: 503 with Retry-After. Others are closed without one. A peer never gets
    /// all of --max-connections, unless that is 1: one connection stays free for others.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = value_parser!(u32).range(1..)
    )]
    pub(crate) max_connections_per_peer: u32,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Uploads")]
pub(crate) struct UploadArgs {
    /// Let clients change the files: PUT, DELETE, MOVE and MKCOL
    ///
    /// This needs --token-file, unless the server listens on a loopback address.
    #[arg(long)]
    pub(crate) writable: bool,

    /// The maximum size of an upload (500M, 20G) [default: what the disk has room for]
    #[arg(
        long,
        value_name = "SIZE",
        requires = "writable",
        value_parser = parse_size
    )]
    pub(crate) max_upload: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// Answer requests for this host name too; may be repeated
    ///
    /// NAME is a host name without a port, such as backup.example.org, or *.example.org for
    /// all names below example.org. Allow only names whose DNS you trust. IP addresses and
    /// localhost are always accepted, the machine's own host name unless --listen is a
    /// loopback address. FAIRBAT_ALLOW_HOST holds names separated by commas.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allow_host: Vec<HostPattern>,

    /// Serve only requests with the bearer token in FILE (RFC 6750)
    ///
    /// To make a token, run: (umask 077; openssl rand -hex 32 > FILE). FILE must belong to
    /// the user who serves or to root, and other users must have no access. Only a group may
    /// read a FILE of root's. A pipe, or a credential from systemd, is always accepted. A client with the
    /// same FILE sends the token like this:
    /// FAIRBAT_HEADER="Authorization: Bearer $(cat FILE)" fairbat get URL. Over plain HTTP,
    /// others on the network can read the token.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,

    /// Serve HTTPS with the certificates in this PEM file; the server's own comes first
    ///
    /// An example below makes a certificate that clients can trust directly.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate, a PEM file without a passphrase
    ///
    /// The same users may have access to it as to the file of --token-file.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) tls_key: Option<PathBuf>,

    /// Speak HTTP/3 as well, over UDP on the same port
    ///
    /// Answers over TCP tell clients so (Alt-Svc). The files of one client go over one connection,
    /// and what is due first goes first. A response yields by fairbat's congestion control, which
    /// needs no fairbat setup here.
    // That of other commands says when, and not whether.
    #[arg(long, requires = "tls_cert", env = "FAIRBAT_SERVE_HTTP3")]
    pub(crate) http3: bool,
}
