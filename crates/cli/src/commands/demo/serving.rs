//! The demonstration as a server: the shop as a live catalog whose stock changes.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use palmette_catalog_live::{LiveCatalog, LiveOptions, Schema, SyncPolicy, Update};
use palmette_demo::{Demo, Shop};
use palmette_serve::Server;
use serde_json::{Map, json};

use super::{DemoArgs, once};
use crate::commands::serve::{ListenAddress, ListenOptions, Listening, log, run_until_stopped};
use crate::output::{grouped, print};

/// Port that is taken where it is free.
const PORT: u16 = 8080;
/// Time between two changes of the stock.
const PAUSE: Duration = Duration::from_millis(500);
/// Items that one change is about.
const CHANGED: usize = 5;

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let _traces = log(&args.server)?;
    let mut config = args.server.config()?;
    // Nobody waits for a demonstration to end.
    config.drain_delay = Duration::ZERO;
    let listen = args.listen.clone().unwrap_or_else(free_address);
    config.server_names.extend(listen.name.clone());
    let demo = Demo::load().context("the built-in model")?;
    let dir = tempfile::tempdir().context("a directory for the shop's catalog")?;
    let catalog = demo.shop().catalog();
    let schema = Schema::of_catalog(&catalog);
    // The shop is made anew each time: a power failure takes nothing.
    let options = LiveOptions { sync: SyncPolicy::Never, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(dir.path(), Some(catalog), Some(schema), options)?;
    let live = Arc::new(live);
    let server = Server::new(config)?;
    let recommender = demo.recommender();
    server.add_model("demo", recommender.engine().clone(), recommender.prompts().clone())?;
    server.add_catalog("shop", Arc::clone(&live), Some(dir.path()))?;
    server.set_target("shop", "demo", "shop")?;

    let listen = ListenOptions { listen, json: args.json };
    let is_over = Arc::new(AtomicBool::new(false));
    let selling = args.still.then_some(()).map_or_else(
        || Some(sell(demo.shop().clone(), Arc::clone(&live), Arc::clone(&is_over))),
        |()| None,
    );
    let served = run_until_stopped(&server, &listen, |Listening { address }| {
        if args.json {
            return Ok(());
        }
        print(&welcome(&demo, args, address)?)
    });
    is_over.store(true, Ordering::Relaxed);
    if let Some(selling) = selling {
        // One that panicked has sold enough.
        _ = selling.join();
    }
    served
}

/// The usual port, or one that is free.
fn free_address() -> ListenAddress {
    let usual = SocketAddr::from(([127, 0, 0, 1], PORT));
    let is_free = TcpListener::bind(usual).is_ok();
    SocketAddr::from(([127, 0, 0, 1], if is_free { PORT } else { 0 })).into()
}

fn welcome(demo: &Demo, args: &DemoArgs, address: SocketAddr) -> anyhow::Result<String> {
    let mut shown = once::shown(demo, args, 1)?;
    shown.truncate(1);
    let mut text = format!(
        "\nA shop of {} items: open http://{address} in a browser, or ask\n",
        grouped(demo.view().view().num_items())
    );
    text += &format!(
        "  curl -s http://{address}/v1/recommend --json '{{\"history\": [\"P0001\", \"P0060\"], \"k\": 3}}'\n"
    );
    if !args.still {
        text += "Its stock changes while you look. Ctrl-C ends it.\n";
    }
    text += &once::answers_text(demo, &shown);
    Ok(text)
}

/// Customers buy and shelves are filled, until it is over: the stock of a few items at a time, the
/// same in every run.
fn sell(
    shop: Shop,
    live: Arc<LiveCatalog>,
    is_over: Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut stock: Vec<u32> = shop.items.iter().map(|item| item.stock).collect();
        let mut place = 0;
        while !is_over.load(Ordering::Relaxed) {
            let mut updates = Vec::with_capacity(CHANGED);
            for _ in 0..CHANGED {
                // A step that is prime to the number of items comes by all of them.
                place = (place + 1009) % stock.len();
                let left = &mut stock[place];
                *left = if *left == 0 { 20 } else { left.saturating_sub(7) };
                let attributes = Map::from_iter([("stock".to_owned(), json!(*left))]);
                updates.push(Update::Patch { id: shop.items[place].id.clone(), attributes });
            }
            // Clients may have deleted an item: the others are still sold.
            if let Err(error) = live.apply_valid(&updates) {
                tracing::warn!(%error, "the stock does not change any more");
                return;
            }
            std::thread::sleep(PAUSE);
        }
    })
}
