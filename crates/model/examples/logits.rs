//! Prints the logits of a model directory, to be compared with another program's.
//!
//! ```text
//! cargo run --release -p palmette-model --example logits -- MODEL_DIRECTORY < requests.jsonl
//! ```
//!
//! A request is a line of JSON, `{"prompt": [tokens], "continuations": [[tokens], ..]}`,
//! continuations of one length. The answer is a line too: `{"prompt": [[V logits] a position],
//! "beams": [[[V logits] a token] a continuation]}`. Prompts are read at once; continuations are
//! the beams of one search after it. `lab/checks/models/logits.py` asks this.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::error::Error;
use std::io::{BufRead as _, stdin};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use palmette_core::TokenId;
use palmette_decode::LogitsSource as _;
use palmette_model::{Model, Session, SessionOptions};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    prompt: Vec<u32>,
    #[serde(default)]
    continuations: Vec<Vec<u32>>,
}

#[derive(Serialize)]
struct Answer {
    prompt: Vec<Vec<f32>>,
    beams: Vec<Vec<Vec<f32>>>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("give a model directory")?;
    let model = Arc::new(Model::load(Path::new(&directory))?);
    for line in stdin().lock().lines() {
        let answer = answer(&model, &serde_json::from_str(&line?)?)?;
        println!("{}", serde_json::to_string(&answer)?);
    }
    Ok(())
}

fn answer(model: &Arc<Model>, request: &Request) -> Result<Answer, Box<dyn Error>> {
    let vocab = model.config().vocab_size;
    let (beams, passes) =
        (request.continuations.len(), request.continuations.first().map_or(0, Vec::len));
    if request.continuations.iter().any(|tokens| tokens.len() != passes) {
        return Err("continuations must be of one length".into());
    }
    let options = SessionOptions {
        max_prompt_tokens: request.prompt.len(),
        max_beams: beams,
        max_decode_passes: passes,
        threads: 1,
    };
    let mut session = Session::new(model, options)?;
    let prompt: Vec<TokenId> = request.prompt.iter().copied().map(TokenId).collect();
    session.set_prompt(&prompt)?;
    let rows = |logits: &[f32]| logits.chunks_exact(vocab).map(<[f32]>::to_vec).collect::<Vec<_>>();
    let all = rows(&session.all_prompt_logits()?);
    session.prompt_logits()?;
    let mut of_beams = vec![Vec::new(); beams];
    for pass in 0..passes {
        let next: Vec<TokenId> =
            request.continuations.iter().map(|tokens| TokenId(tokens[pass])).collect();
        let parents: Vec<u32> =
            (0..beams as u32).map(|beam| if pass == 0 { 0 } else { beam }).collect();
        let logits = rows(session.next_logits(&parents, &next)?);
        of_beams.iter_mut().zip(logits).for_each(|(beam, row)| beam.push(row));
    }
    Ok(Answer { prompt: all, beams: of_beams })
}
