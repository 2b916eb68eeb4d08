//! A detour from one network namespace to another through this process, which
//! keeps each packet for a while: not all kernels have netem.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::link::{command, within};
use super::*;

/// What the interfaces at its ends are called.
const NAME: &str = "detour";

/// There while it is not dropped.
pub(super) struct Detour {
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Detour {
    /// What `from` sends to this address goes that way and is so much longer on
    /// it, in steps of a millisecond. Answers come as before.
    pub(super) fn new(from: &str, to: &str, address: &str, delay: Duration) -> Self {
        let [entrance, exit] = [from, to].map(|namespace| {
            within(namespace, || {
                let interface = interface();
                command("ip", &format!("link set {NAME} up"));
                // The answers come in, or go out, elsewhere.
                for name in ["all", "eth0", NAME] {
                    let path = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
                    fs::write(path, "0").expect("root");
                }
                interface
            })
        });
        command(
            "ip",
            &format!("-n {from} route add {address}/32 dev {NAME}"),
        );
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = thread::spawn(move || carry(&entrance, &exit, delay, &until));
        Self {
            is_over,
            thread: Some(thread),
        }
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(mut entrance: &File, mut exit: &File, delay: Duration, is_over: &AtomicBool) {
    let mut on_the_way = VecDeque::new();
    let mut buffer = [0; 2_000];
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        while let Ok(length) = entrance.read(&mut buffer) {
            on_the_way.push_back((now + delay, buffer[..length].to_vec()));
        }
        while let Some((due, packet)) = on_the_way.front()
            && *due <= now
        {
            // One that finds no room is lost, as anywhere.
            let _ = exit.write(packet);
            on_the_way.pop_front();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// An interface of this namespace whose packets this process reads and writes.
#[allow(unsafe_code, reason = "nobody wraps this ioctl")]
fn interface() -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK);
    let file = options.open("/dev/net/tun").expect("a kernel with TUN");
    // struct ifreq: the name, then the flags.
    let mut request = [0_u8; 40];
    request[..NAME.len()].copy_from_slice(NAME.as_bytes());
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    request[16..18].copy_from_slice(&flags.to_ne_bytes());
    // SAFETY: it reads and writes a struct ifreq, which has these 40 bytes.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    file
}
