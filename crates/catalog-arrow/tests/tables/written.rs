//! Tables in every way in which others write them.

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use palmette_catalog_arrow::TableFormat;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Parquet(Compression, WriterVersion),
    ArrowFile(Option<CompressionType>),
    ArrowStream(Option<CompressionType>),
}

pub(crate) fn ways() -> [Way; 14] {
    [
        Way::Parquet(Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::UNCOMPRESSED, WriterVersion::PARQUET_2_0),
        Way::Parquet(Compression::SNAPPY, WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::SNAPPY, WriterVersion::PARQUET_2_0),
        Way::Parquet(Compression::GZIP(Default::default()), WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::BROTLI(Default::default()), WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::LZ4, WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::LZ4_RAW, WriterVersion::PARQUET_1_0),
        Way::Parquet(Compression::ZSTD(Default::default()), WriterVersion::PARQUET_2_0),
        Way::ArrowFile(None),
        Way::ArrowFile(Some(CompressionType::LZ4_FRAME)),
        Way::ArrowFile(Some(CompressionType::ZSTD)),
        Way::ArrowStream(None),
        Way::ArrowStream(Some(CompressionType::ZSTD)),
    ]
}

impl Way {
    pub(crate) fn format(self) -> TableFormat {
        match self {
            Way::Parquet(..) => TableFormat::Parquet,
            Way::ArrowFile(_) | Way::ArrowStream(_) => TableFormat::Arrow,
        }
    }

    /// The bytes of a file with `rows` rows in each of its row groups, or batches.
    pub(crate) fn write(self, batch: &RecordBatch, rows: usize) -> Vec<u8> {
        let schema = batch.schema();
        let parts = (0..batch.num_rows())
            .step_by(rows)
            .map(|start| batch.slice(start, rows.min(batch.num_rows() - start)));
        let options =
            |compression| IpcWriteOptions::default().try_with_compression(compression).unwrap();
        match self {
            Way::Parquet(compression, version) => {
                let properties = WriterProperties::builder()
                    .set_compression(compression)
                    .set_writer_version(version)
                    .set_max_row_group_row_count(Some(rows))
                    .build();
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), schema, Some(properties)).unwrap();
                parts.for_each(|part| writer.write(&part).unwrap());
                writer.into_inner().unwrap()
            }
            Way::ArrowFile(compression) => {
                let options = options(compression);
                let mut writer =
                    FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
                parts.for_each(|part| writer.write(&part).unwrap());
                writer.finish().unwrap();
                writer.into_inner().unwrap()
            }
            Way::ArrowStream(compression) => {
                let options = options(compression);
                let mut writer =
                    StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
                parts.for_each(|part| writer.write(&part).unwrap());
                writer.finish().unwrap();
                writer.into_inner().unwrap()
            }
        }
    }
}
