use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use http_body_util::{BodyExt, Empty, Full};

use super::*;
use crate::lane::{LaneSettings, Service};

/// Time that a server may be silent. The rate limit makes each piece take longer.
const MAX_SILENCE: Duration = Duration::from_millis(300);

/// byte/s
const RATE_LIMIT: u64 = 20_000;

/// A server that takes one request with its body, answers, and then says nothing.
fn server(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut piece = [0; 4096];
        let length = loop {
            let read = stream.read(&mut piece).unwrap();
            seen.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
            let Some(head) = text.find("\r\n\r\n") else {
                continue;
            };
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            break head + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
        };
        while seen.len() < length {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "all of the body comes");
            seen.extend_from_slice(&piece[..read]);
        }
        stream.write_all(&answer).unwrap();
        // Until the other end goes.
        let _ = stream.read(&mut piece);
    });
    address
}

fn answer(length: usize, sent: usize) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    answer.resize(answer.len() + sent, b'x');
    answer
}

fn client(wanted: LeverPolicy) -> LaneClient {
    let lane = Lane::start(LaneSettings {
        weight: 1.0,
        ..LaneSettings::new(1)
    });
    let settings = HttpSettings {
        stall_timeout: Some(MAX_SILENCE),
        ..HttpSettings::default()
    };
    LaneClient::start(&settings, &lane.unwrap(), wanted, 1, Service::Scavenge).unwrap()
}

fn limited() -> RequestContext {
    RequestContext {
        rate_limits: vec![Arc::new(RateLimit::new(RATE_LIMIT))],
        job: Some(Arc::default()),
        ..RequestContext::default()
    }
}

#[tokio::test]
async fn a_rate_limit_of_ours_is_no_silence_of_a_sending_server() {
    let client = client(LeverPolicy::Receiver(ReceiverPolicy::default()));
    let address = server(answer(60_000, 60_000));
    let request = Request::get(format!("http://{address}/"));
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let context = limited();
    let answer = client.send(request, context.clone()).await.unwrap();
    let body = answer.into_body().collect().await.expect("all of it comes");
    assert_eq!(body.to_bytes().len(), 60_000);
    assert_eq!(context.moved.load(Ordering::Relaxed), 60_000);
    assert_eq!(context.job.unwrap().load(Ordering::Relaxed), 60_000);
    assert_eq!(client.lane.bytes(), 60_000);
}

#[tokio::test]
async fn a_rate_limit_of_ours_is_no_silence_of_a_receiving_server() {
    let client = client(LeverPolicy::Sender(SenderPolicy::default()));
    let address = server(answer(0, 0));
    let body = Full::new(Bytes::from(vec![b'x'; 100_000]));
    let request = Request::put(format!("http://{address}/"))
        .body(body)
        .unwrap();
    let answer = client.send(request, limited()).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    assert_eq!(client.lane.bytes(), 100_000);
}

#[tokio::test]
async fn a_server_that_says_no_more_is_given_up() {
    let client = client(LeverPolicy::Receiver(ReceiverPolicy::default()));
    let address = server(answer(60_000, 100));
    let request = Request::get(format!("http://{address}/"));
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let answer = client
        .send(request, RequestContext::default())
        .await
        .unwrap();
    let broken = answer.into_body().collect().await.unwrap_err();
    assert!(matches!(broken, BrokenOff::Silent), "{broken}");
    assert_eq!(client.lane.bytes(), 0, "it is no content of a job");
}
