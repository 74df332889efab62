//! Launches of a pass, in order: a table of contents.

use palmette_model::ModelConfig;

use crate::arguments::{Attention, EmbedNorm, HeadRows, Heads, Norm, PassSizes, Product};
use crate::pass::Pass;
use crate::plan::{Memory, PassPlaces, Plan, TILE};
use crate::sizes::runs;
use crate::weights::Weights;
use crate::{Address, Arguments, DeviceError, Driver, Kernel, Stream, launch};

/// Everything that the launches of a pass name.
#[derive(Clone, Copy)]
pub(crate) struct Forward<'a> {
    pub(crate) driver: &'a dyn Driver,
    /// Number of the device's multiprocessors.
    pub(crate) multiprocessors: u32,
    pub(crate) config: &'a ModelConfig,
    pub(crate) weights: &'a Weights,
    pub(crate) plan: &'a Plan,
    pub(crate) memory: &'a Memory,
}

/// Blocks a multiprocessor: rows wait for memory, products for registers.
const ROW_BLOCKS: u32 = 4;

impl Forward<'_> {
    /// Layers over a pass, whose description is on the device. They leave the norm of each row; of
    /// a prompt's pass, that of its last row as the last one.
    pub(crate) fn layers(&self, pass: &Pass) -> Result<(), DeviceError> {
        let (s, memory, weights) = (&self.plan.sizes, self.memory, self.weights);
        let places = PassPlaces::of(self.plan);
        let at = |place| memory.pass.address_at(place);
        let rows = at(places.sizes);
        let width = s.hidden as i32;
        let Some(first) = weights.layers.first() else { return Ok(()) };
        self.rows(
            Kernel::EmbedNorm,
            &EmbedNorm {
                rows,
                tokens: at(places.tokens),
                table: weights.embeddings,
                weight: first.attention_norm,
                x: memory.x.address(),
                normed: memory.normed.address(),
                width,
                factor: self.config.architecture.embedding_scale,
                epsilon: self.config.rms_norm_eps,
            },
        )?;
        let (heads, attention, merge) = match s.head_width {
            64 => (Kernel::Heads64, Kernel::PromptAttention64, Kernel::MergeOwn64),
            _ => (Kernel::Heads128, Kernel::PromptAttention128, Kernel::MergeOwn128),
        };
        for (index, layer) in weights.layers.iter().enumerate() {
            let pages = index * self.plan.layer_page_bytes();
            let keys = memory.keys.address_at(pages);
            let values = memory.values.address_at(pages);
            let own = memory.own.address_at(index * self.plan.layer_slot_bytes());

            let parts =
                self.sums(pass, memory.normed.address(), layer.qkv, s.qkv_width(), s.hidden)?;
            self.rows(
                heads,
                &Heads {
                    rows,
                    sums: memory.sums.address(),
                    bias: layer.qkv_bias,
                    query_norm: layer.query_norm,
                    key_norm: layer.key_norm,
                    cosines: weights.cosines,
                    sines: weights.sines,
                    positions: at(places.positions),
                    destinations: at(places.destinations),
                    queries: memory.queries.address(),
                    keys,
                    values,
                    own,
                    parts,
                    part_rows: pass.rows as i32,
                    heads: s.heads as i32,
                    key_heads: s.key_heads as i32,
                    epsilon: self.config.rms_norm_eps,
                },
            )?;
            let attend = Attention {
                sizes: at(places.sizes),
                items: at(places.items),
                requests: at(places.requests),
                pages: at(places.pages),
                visible: at(places.visible),
                own_tokens: at(places.own_tokens),
                ancestors: at(places.ancestors),
                queries: memory.queries.address(),
                keys,
                values,
                own,
                sums: memory.attention_sums.address(),
                statistics: memory.attention_statistics.address(),
                out: memory.attended.address(),
                heads: s.heads as i32,
                key_heads: s.key_heads as i32,
                most_rows: self.plan.most_beams() as i32,
                scale: self.config.architecture.attention_scale(s.head_width)
                    * std::f32::consts::LOG2_E,
            };
            self.launch(attention, 1, &attend)?;
            if pass.merge_rows > 0 {
                self.rows(merge, &attend)?;
            }
            let out = layer.attention_out;
            let parts =
                self.sums(pass, memory.attended.address(), out, s.hidden, s.query_width())?;
            self.norm(pass, parts, layer.mlp_norm)?;
            self.launch(
                Kernel::ProductSwiglu,
                1,
                &Product {
                    rows,
                    x: memory.normed.address(),
                    w: layer.gate_up,
                    out: memory.inner.address(),
                    n: 2 * s.inner as i32,
                    k: width,
                    // One run: its pairs are made in the registers of the product.
                    runs: 1,
                    ..no_product()
                },
            )?;
            let parts = self.sums(pass, memory.inner.address(), layer.down, s.hidden, s.inner)?;
            let next = weights.layers.get(index + 1);
            self.norm(pass, parts, next.map_or(weights.final_norm, |next| next.attention_norm))?;
        }
        if pass.merge_rows == 0 {
            // Kept, for other columns of the same row.
            self.rows(
                Kernel::HeadRows,
                &HeadRows {
                    rows: rows_of_head(rows),
                    taken: at(places.taken),
                    x: memory.x.address(),
                    heads: memory.normed.address(),
                    taken_x: memory.last_x.address(),
                    taken_heads: memory.last_normed.address(),
                    width,
                    heads_width: width,
                },
            )?;
        }
        Ok(())
    }

    /// Logits of some columns: of the prompt's last row, or of all rows of a pass of beams.
    pub(crate) fn logits(
        &self,
        of_beams: bool,
        columns: &std::ops::Range<usize>,
    ) -> Result<(), DeviceError> {
        let (s, memory) = (&self.plan.sizes, self.memory);
        let places = PassPlaces::of(self.plan);
        let first_tile = columns.start / TILE;
        let x = if of_beams { &memory.normed } else { &memory.last_normed };
        self.launch(
            Kernel::ProductLogits,
            1,
            &Product {
                rows: rows_of_head(memory.pass.address_at(places.sizes)),
                x: x.address(),
                w: self.weights.head,
                out: memory.logits.address(),
                windows: memory.pass.address_at(places.windows),
                statistics: memory.logit_statistics.address(),
                n: s.vocab as i32,
                k: s.hidden as i32,
                runs: runs(s.vocab, s.hidden) as i32,
                first_tile: first_tile as i32,
                tiles: (columns.end.div_ceil(TILE) - first_tile) as i32,
                columns: columns.len() as i32,
                ..no_product()
            },
        )
    }

    /// Partial sums of a product over all rows of a pass; returns the number of parts.
    fn sums(
        &self,
        pass: &Pass,
        x: Address,
        w: Address,
        n: usize,
        k: usize,
    ) -> Result<i32, DeviceError> {
        let (runs, split) = (runs(n, k) as i32, Plan::splits(pass.rows));
        let rows = self.memory.pass.address_at(PassPlaces::of(self.plan).sizes);
        let product = Product {
            rows,
            x,
            w,
            out: self.memory.sums.address(),
            n: n as i32,
            k: k as i32,
            runs,
            split: i32::from(split),
            part_rows: pass.rows as i32,
            ..no_product()
        };
        self.launch(Kernel::ProductSums, 1, &product)?;
        Ok(if split { runs } else { 1 })
    }

    /// Adds a product's sums to the residual stream and norms it.
    fn norm(&self, pass: &Pass, parts: i32, weight: Address) -> Result<(), DeviceError> {
        self.rows(
            Kernel::NormRows,
            &Norm {
                rows: self.memory.pass.address_at(PassPlaces::of(self.plan).sizes),
                sums: self.memory.sums.address(),
                weight,
                x: self.memory.x.address(),
                normed: self.memory.normed.address(),
                width: self.plan.sizes.hidden as i32,
                parts,
                part_rows: pass.rows as i32,
                epsilon: self.config.rms_norm_eps,
            },
        )
    }

    fn rows<A: Arguments>(&self, kernel: Kernel, arguments: &A) -> Result<(), DeviceError> {
        self.launch(kernel, ROW_BLOCKS, arguments)
    }

    fn launch<A: Arguments>(
        &self,
        kernel: Kernel,
        blocks: u32,
        arguments: &A,
    ) -> Result<(), DeviceError> {
        let grid = [self.multiprocessors * blocks, 1, 1];
        launch(self.driver, Stream::Compute, kernel, grid, arguments)
    }
}

/// Address of the number of rows whose logits are wanted, behind that of all rows.
fn rows_of_head(sizes: Address) -> Address {
    let field = PassSizes::FIELDS.iter().find(|field| field.name == "head_rows");
    Address(sizes.0 + field.map_or(0, |field| field.offset as u64))
}

fn no_product() -> Product {
    Product {
        rows: Address::NULL,
        x: Address::NULL,
        w: Address::NULL,
        out: Address::NULL,
        windows: Address::NULL,
        statistics: Address::NULL,
        n: 0,
        k: 0,
        runs: 1,
        split: 0,
        part_rows: 0,
        first_tile: 0,
        tiles: 0,
        columns: 0,
        whole: 0,
    }
}
