//! Serves the page of an agent whose night is invented, until it is interrupted: to
//! look at the page, and for the pictures in `docs/`.
//!
//! ```text
//! cargo run -p fairbat-agent --example agent_page
//! chromium --headless --hide-scrollbars --virtual-time-budget=4000 --window-size=1280,1860 \
//!     --screenshot=docs/agent-page.png http://127.0.0.1:PORT/
//! pngquant --force --strip --ext .png docs/agent-page.png
//! ```

#[path = "../tests/outside/scene/mod.rs"]
mod scene;

fn main() {
    let (handle, port) = scene::night();
    let serving = scene::Serving::begin(handle, port);
    println!("{}", serving.url("/"));
    loop {
        std::thread::park();
    }
}
