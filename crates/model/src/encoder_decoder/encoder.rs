//! The encoder's run over a prompt, and what the decoder's layers attend to afterwards.

use palmette_core::TokenId;

use super::{RelativeBias, bias_tables};
use crate::allocation::zeroed;
use crate::blocks::{block_rows, for_each_block};
use crate::head_shape::HeadShape;
use crate::key_values::{KeyValues, ONLY_PAGE, store_block};
use crate::layers::{Encoded, Positions, Workspace};
use crate::model::Model;

/// The encoder's side of a session: one prompt at a time.
#[derive(Debug)]
pub(crate) struct EncoderRun {
    /// Tokens that the encoder reads.
    prompt: Vec<TokenId>,
    /// Keys and values of the encoder's layer that is being computed.
    own: KeyValues,
    /// Keys and values of what the encoder made, for the cross-attention of each decoder layer.
    cross: KeyValues,
    biases: Vec<RelativeBias>,
    /// The residual stream, `[T, D]`
    hidden: Vec<f32>,
    /// True once `cross` is of this prompt.
    is_read: bool,
}

impl EncoderRun {
    /// `None` where there is not the memory for it; `Some(None)` for a model without an encoder.
    pub(crate) fn new(model: &Model, max_tokens: usize) -> Option<Option<Self>> {
        let (config, Some(weights)) = (&model.config, &model.weights.encoder) else {
            return Some(None);
        };
        let shape = HeadShape::of(config);
        let mut prompt = Vec::new();
        prompt.try_reserve_exact(max_tokens).ok()?;
        let biases = match &config.architecture.relative_positions {
            Some(by) => bias_tables(by, &weights.relative_biases, true, max_tokens)?,
            None => Vec::new(),
        };
        Some(Some(Self {
            prompt,
            own: KeyValues::new(shape, 1, 1, max_tokens)?,
            cross: KeyValues::new(shape, config.num_hidden_layers, 1, max_tokens)?,
            biases,
            hidden: zeroed(max_tokens * config.hidden_size)?,
            is_read: false,
        }))
    }

    /// Begins with another prompt, which has been checked.
    pub(crate) fn set_prompt(&mut self, tokens: &[TokenId]) {
        self.prompt.clear();
        self.prompt.extend_from_slice(tokens);
        self.is_read = false;
    }

    /// Tokens of the prompt.
    pub(crate) fn num_tokens(&self) -> usize {
        self.prompt.len()
    }

    /// Keys and values that one layer of the decoder attends to; after [`run`](Self::run).
    pub(crate) fn layer(&self, index: usize) -> Encoded<'_> {
        Encoded { key_values: self.cross.layer(ONLY_PAGE, index), tokens: self.prompt.len() }
    }

    pub(crate) fn cache_bytes(&self) -> usize {
        self.own.bytes() + self.cross.bytes()
    }

    /// Runs the prompt through the encoder, where that has not been done, and what comes out
    /// through the keys' and values' matrices of every decoder layer. Each layer takes two rounds
    /// over its blocks, as a decoder's prompt does.
    pub(crate) fn run(&mut self, model: &Model, workspaces: &mut [Workspace]) {
        let (config, Some(weights)) = (&model.config, &model.weights.encoder) else { return };
        if std::mem::replace(&mut self.is_read, true) {
            return;
        }
        let (d, shape, rows) = (config.hidden_size, HeadShape::of(config), self.prompt.len());
        let block = block_rows(rows, workspaces.len());
        let hidden = &mut self.hidden[..rows * d];
        for (row, &token) in hidden.chunks_exact_mut(d).zip(&self.prompt) {
            model.weights.embed(token, row);
        }
        for (index, layer) in weights.layers.iter().enumerate() {
            let bias = self.biases.get(index).or(self.biases.first());
            let at = |place: usize| Positions::relative(bias, place * block, 1);
            let cache = self.own.blocks_mut(ONLY_PAGE[0], 0, 0, block);
            let blocks = hidden.chunks(block * d).zip(cache).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, (hidden, cache))| {
                let key_values =
                    workspace.project_keys_and_values(config, layer, at(place), hidden);
                store_block(&shape, key_values, 0, cache);
            });
            let all = Encoded { key_values: self.own.layer(ONLY_PAGE, 0), tokens: rows };
            let blocks = hidden.chunks_mut(block * d).enumerate();
            for_each_block(workspaces, blocks, |workspace, (place, hidden)| {
                workspace.finish_encoder_layer(config, layer, at(place), all, hidden);
            });
        }
        for (index, layer) in model.weights.layers.iter().enumerate() {
            let Some(cross) = &layer.cross else { continue };
            let blocks =
                hidden.chunks(block * d).zip(self.cross.blocks_mut(ONLY_PAGE[0], index, 0, block));
            for_each_block(workspaces, blocks, |workspace, (hidden, cache)| {
                let key_values =
                    workspace.project_encoded(config, &weights.final_norm, cross, hidden);
                store_block(&shape, key_values, 0, cache);
            });
        }
    }

    /// Bytes beside the caches': of the prompt's tokens and the biases, and of the residual stream.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let tokens = self.prompt.capacity() * size_of::<TokenId>();
        let biases: usize = self.biases.iter().map(RelativeBias::bytes).sum();
        (tokens + biases, size_of_val(&*self.hidden))
    }
}
