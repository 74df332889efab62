/* Palmette: grammars as exact token masks, for C and what calls C. Apache-2.0 or MIT.
 *
 * A token is allowed if and only if the text can still become one that fits its grammar. A vocabulary is made once a
 * model, a grammar once a schema, a matcher once a sequence.
 *
 * Errors: a call that can fail returns a status. Its last argument may be NULL; else it becomes an error with the message and
 * its place, to be freed by palmette_error_free(), or NULL where the call succeeds. NULL where a handle is needed is
 * an error. No panic passes into the caller.
 *
 * Handles: what a call makes is written through its last argument but one, and is freed by the function of its kind.
 * Handles keep what they are made of, so they may be freed in any order.
 *
 * Threads: vocabularies, grammars, errors and cancellations are shared by threads as they are. A matcher and a batch are
 * used by one thread at a time, and may move between threads.
 *
 * Memory: a pointer that is not NULL points at as much memory as the number after it says, which was written once, as
 * calloc() gives it, and which nobody else writes during the call. A number of 0 goes with any pointer. Texts are UTF-8.
 */

#ifndef PALMETTE_H
#define PALMETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Outcome of a call.
enum palmette_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success: what the call promises is done.
  PALMETTE_STATUS_OK = 0,
  // An argument that no call takes: a null pointer, a length, a name, text that is no UTF-8.
  PALMETTE_STATUS_INVALID_ARGUMENT = 1,
  // A vocabulary that cannot be loaded or used, or a token that is not in it.
  PALMETTE_STATUS_VOCABULARY = 2,
  // A grammar that its language refuses, or that has no text.
  PALMETTE_STATUS_GRAMMAR = 3,
  // A JSON Schema that asks for what no grammar can express.
  PALMETTE_STATUS_UNSUPPORTED = 4,
  // A limit of work or memory that is exceeded, which the message names.
  PALMETTE_STATUS_LIMIT_EXCEEDED = 5,
  // Work that was called off.
  PALMETTE_STATUS_CANCELLED = 6,
  // A token or byte that the grammar does not allow at its place; nothing was changed.
  PALMETTE_STATUS_NOT_ALLOWED = 7,
  // Tokens that are too few for the text to end within them.
  PALMETTE_STATUS_TOO_FEW_TOKENS = 8,
  // Tokens that are more than a text is known to take.
  PALMETTE_STATUS_TOO_MANY_TOKENS = 9,
  // A file that the system does not read or write.
  PALMETTE_STATUS_IO = 10,
  // A file or bytes that are no compiled grammar of this vocabulary.
  PALMETTE_STATUS_SAVED_GRAMMAR = 11,
  // A fault of this library.
  PALMETTE_STATUS_PANIC = 12,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum palmette_status palmette_status;
#else
typedef int32_t palmette_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Threads that fill masks, with their memory. One thread uses it at a time; made once.
typedef struct palmette_batch palmette_batch;

// Bytes that the library made.
typedef struct palmette_bytes palmette_bytes;

// A wish that work ends: any thread may have it while another works.
typedef struct palmette_cancellation palmette_cancellation;

// A failure: its status, message and place.
typedef struct palmette_error palmette_error;

// A grammar made ready to mask the tokens of a vocabulary. Threads share it.
typedef struct palmette_grammar palmette_grammar;

// A sequence being written under a grammar: what may follow, and what has been committed. One
// thread uses it at a time.
typedef struct palmette_matcher palmette_matcher;

// The tokens of a model, and the grammars that were compiled over them. Threads share it.
typedef struct palmette_vocabulary palmette_vocabulary;

// Numbers of tokens that a text may still take, the next one among them and end tokens left out.
typedef struct palmette_lengths {
  // The fewest: the text does not end before. 0 where it may end at once.
  size_t tokens_needed;
  // The most: the text ends in time. SIZE_MAX where it may be cut off.
  size_t tokens_left;
} palmette_lengths;

// A token of a vocabulary that is given token by token.
typedef struct palmette_token {
  // Bytes that it spells; NULL for a special token, which no text holds.
  const uint8_t *bytes;
  // Number of those bytes.
  size_t num_bytes;
  // Name by which grammars may ask for a special token, up to NUL; NULL for none.
  const char *name;
} palmette_token;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a batch of so many threads, the caller's included; 0 is as many as the process may run at
// once.
palmette_status palmette_batch_new(size_t threads,
                                   struct palmette_batch **batch,
                                   struct palmette_error **error);

// Limits the steps that each mask of a batch may take, as palmette_matcher_limit_masks() does for
// those of a matcher. NULL is nothing.
void palmette_batch_limit_masks(struct palmette_batch *batch, uint64_t steps);

// Writes the masks of many sequences: row i of `words`, which has `row_words` words, is the mask
// of matcher i. Matchers may be of different grammars and vocabularies, one may be there more than
// once, and NULL leaves its row as it is. They stay where they are.
//
// `lengths` is an array of as many lengths as there are matchers, each as
// palmette_matcher_fill_mask() takes it; NULL is any length. A row that fails is all 0, and the
// others are filled all the same: the error is that of the first, and where `statuses` is not NULL
// it becomes the status of each row.
palmette_status palmette_batch_fill(struct palmette_batch *batch,
                                    const struct palmette_matcher *const *matchers,
                                    size_t num_matchers,
                                    uint32_t *words,
                                    size_t row_words,
                                    const struct palmette_lengths *lengths,
                                    int32_t *statuses,
                                    struct palmette_error **error);

// Frees a batch, whose threads then end by themselves. NULL is nothing.
void palmette_batch_free(struct palmette_batch *batch);

// Makes a cancellation that nobody wishes for yet.
struct palmette_cancellation *palmette_cancellation_new(void);

// Calls off the work that was given this cancellation, which then ends soon with
// PALMETTE_STATUS_CANCELLED. Any thread may call it. NULL is nothing.
void palmette_cancellation_cancel(const struct palmette_cancellation *cancellation);

// Frees a cancellation, which no work may have any more. NULL is nothing.
void palmette_cancellation_free(struct palmette_cancellation *cancellation);

// The status of an error; PALMETTE_STATUS_OK for NULL.
palmette_status palmette_error_status(const struct palmette_error *error);

// The message, as UTF-8 that ends with NUL: the value, the rule that it breaks and the way out.
// NULL for NULL. It is the error's and lives as long.
const char *palmette_error_message(const struct palmette_error *error);

// The part of a JSON Schema, structural tag or request that it is about, as a JSON pointer (RFC
// 6901); empty for the whole, NULL where there is none. It is the error's and lives as long.
const char *palmette_error_pointer(const struct palmette_error *error);

// The line of a grammar's text that it is about, from 1; 0 where there is none.
uint32_t palmette_error_line(const struct palmette_error *error);

// The column in that line, in characters from 1; 0 where there is none.
uint32_t palmette_error_column(const struct palmette_error *error);

// The row of a batch that it is about; SIZE_MAX where there is none.
size_t palmette_error_row(const struct palmette_error *error);

// Frees an error. NULL is nothing.
void palmette_error_free(struct palmette_error *error);

// Compiles a grammar, or finds it where an equal one was compiled over the vocabulary before.
//
// `language` is "json_schema", "json_object" (which takes no text), "lark", "gbnf", "regex",
// "structural_tag" or "tools". `options` are those of the language, a JSON object up to NUL, such
// as {"whitespace": "compact"}; of tools {"format": "hermes"} at least. NULL is none. `limits` is
// a JSON object of limits of this grammar alone, such as {"steps": 1000000000}, which then is not
// kept for others; NULL is the default ones. `cancellation` calls the work off; NULL is nobody.
palmette_status palmette_grammar_compile(const struct palmette_vocabulary *vocabulary,
                                         const char *language,
                                         const char *text,
                                         size_t num_bytes,
                                         const char *options,
                                         const char *limits,
                                         const struct palmette_cancellation *cancellation,
                                         struct palmette_grammar **grammar,
                                         struct palmette_error **error);

// Parts of the grammar that have no effect, or are enforced in part only: a line each, with its
// place; empty where there are none, NULL for NULL. It is the grammar's and lives as long.
const char *palmette_grammar_notes(const struct palmette_grammar *grammar);

// Size of the grammar's vocabulary: masks have a bit for each token. 0 for NULL.
size_t palmette_grammar_num_tokens(const struct palmette_grammar *grammar);

// About how much memory it takes by now, without the vocabulary: masks that were asked for are
// kept. 0 for NULL.
size_t palmette_grammar_memory(const struct palmette_grammar *grammar);

// Frees a grammar; matchers of it keep what they need. NULL is nothing.
void palmette_grammar_free(struct palmette_grammar *grammar);

// Makes a matcher at the beginning of a text. `ends` are the tokens that end this one instead of
// the vocabulary's; NULL with 0 is the vocabulary's.
palmette_status palmette_matcher_new(const struct palmette_grammar *grammar,
                                     const uint32_t *ends,
                                     size_t num_ends,
                                     struct palmette_matcher **matcher,
                                     struct palmette_error **error);

// Copies a matcher, to continue its text in two ways; neither sees the other. It costs a few
// counts.
palmette_status palmette_matcher_fork(const struct palmette_matcher *matcher,
                                      struct palmette_matcher **fork,
                                      struct palmette_error **error);

// Limits the steps that each mask may take, some tens of nanoseconds each; UINT64_MAX is no limit,
// as a new matcher has it. A mask that would take more is PALMETTE_STATUS_LIMIT_EXCEEDED. Those of
// batches are limited by palmette_batch_limit_masks(). NULL is nothing.
void palmette_matcher_limit_masks(struct palmette_matcher *matcher, uint64_t steps);

// Writes the tokens that may follow into a row: bit t % 32 of word t / 32 is token t, and 1 is
// allowed. Words past the vocabulary become 0; all do when nothing may follow, and when the call
// fails.
//
// With `lengths` the text ends after so many tokens: only tokens may follow after which it still
// can (PALMETTE_STATUS_TOO_FEW_TOKENS and PALMETTE_STATUS_TOO_MANY_TOKENS where no way is known).
// NULL is any length.
palmette_status palmette_matcher_fill_mask(struct palmette_matcher *matcher,
                                           uint32_t *words,
                                           size_t num_words,
                                           const struct palmette_lengths *lengths,
                                           struct palmette_error **error);

// Moves over a token.
palmette_status palmette_matcher_commit(struct palmette_matcher *matcher,
                                        uint32_t token,
                                        struct palmette_error **error);

// Moves over several tokens, or over none of them.
palmette_status palmette_matcher_commit_all(struct palmette_matcher *matcher,
                                            const uint32_t *tokens,
                                            size_t num_tokens,
                                            struct palmette_error **error);

// Moves over text that no token stands for, such as the part of the answer that is in the prompt.
// A rollback counts it as one token.
palmette_status palmette_matcher_commit_bytes(struct palmette_matcher *matcher,
                                              const uint8_t *bytes,
                                              size_t num_bytes,
                                              struct palmette_error **error);

// Takes back the last commits.
palmette_status palmette_matcher_rollback(struct palmette_matcher *matcher,
                                          size_t num_commits,
                                          struct palmette_error **error);

// Begins again. NULL is nothing.
void palmette_matcher_reset(struct palmette_matcher *matcher);

// Number of commits that can be taken back. 0 for NULL.
size_t palmette_matcher_num_commits(const struct palmette_matcher *matcher);

// Words of 32 bits of its masks. 0 for NULL.
size_t palmette_matcher_mask_words(const struct palmette_matcher *matcher);

// True once an end token was committed. False for NULL.
bool palmette_matcher_has_ended(const struct palmette_matcher *matcher);

// Tells whether the text so far fits: it may end here, or has ended.
palmette_status palmette_matcher_is_accepting(struct palmette_matcher *matcher,
                                              bool *is_accepting,
                                              struct palmette_error **error);

// Frees a matcher. NULL is nothing.
void palmette_matcher_free(struct palmette_matcher *matcher);

// The tokens that must follow, each the only one allowed after those before it: as many as
// `capacity` at most are written to `tokens`, and `num_tokens` becomes their number.
palmette_status palmette_matcher_forced_tokens(struct palmette_matcher *matcher,
                                               uint32_t *tokens,
                                               size_t capacity,
                                               size_t *num_tokens,
                                               struct palmette_error **error);

// The bytes that must follow, whatever the text becomes: as many as `capacity` at most are written
// to `bytes`, and `num_bytes` becomes their number.
palmette_status palmette_matcher_forced_bytes(struct palmette_matcher *matcher,
                                              uint8_t *bytes,
                                              size_t capacity,
                                              size_t *num_bytes,
                                              struct palmette_error **error);

// Number of a draft's tokens that could be committed, one after another; nothing is.
palmette_status palmette_matcher_accepted_prefix(struct palmette_matcher *matcher,
                                                 const uint32_t *draft,
                                                 size_t num_tokens,
                                                 size_t *num_accepted,
                                                 struct palmette_error **error);

// Writes the masks along a draft: the mask before it, and after each of its tokens, into
// num_tokens + 1 rows of `row_words` words. `num_kept` becomes the number of its tokens that may
// be kept; rows behind a token that may not follow, or behind an end token, are all 0. The matcher
// stays where it is.
//
// `lengths` are those of the mask before the draft, and one less after each of its tokens; a token
// after which no text of such a length is known is not kept. NULL is any length.
palmette_status palmette_matcher_fill_draft_masks(struct palmette_matcher *matcher,
                                                  const uint32_t *draft,
                                                  size_t num_tokens,
                                                  uint32_t *words,
                                                  size_t row_words,
                                                  const struct palmette_lengths *lengths,
                                                  size_t *num_kept,
                                                  struct palmette_error **error);

// Number of tokens of the shortest way to the end of the text that is known, end tokens left out;
// 0 where it is whole, SIZE_MAX where no way is known.
palmette_status palmette_matcher_fewest_tokens(struct palmette_matcher *matcher,
                                               size_t *num_tokens,
                                               struct palmette_error **error);

// Tells whether a text is known that is whole after tokens of these lengths; then masks of them
// keep one. NULL is any length.
palmette_status palmette_matcher_has_way(struct palmette_matcher *matcher,
                                         const struct palmette_lengths *lengths,
                                         bool *has_way,
                                         struct palmette_error **error);

// The tokens of the shortest way to the end of the text that is known: `num_tokens` becomes their
// number, SIZE_MAX where no way is known; of them, as many as `capacity` are written to `tokens`.
palmette_status palmette_matcher_shortest_completion(struct palmette_matcher *matcher,
                                                     uint32_t *tokens,
                                                     size_t capacity,
                                                     size_t *num_tokens,
                                                     struct palmette_error **error);

// Writes a grammar to a file with the masks that are known by now; palmette_grammar_load() reads
// it, and so do Python and the command line.
palmette_status palmette_grammar_save(const struct palmette_grammar *grammar,
                                      const char *path,
                                      struct palmette_error **error);

// Reads a grammar that was written to a file, over the vocabulary that it was compiled for.
palmette_status palmette_grammar_load(const struct palmette_vocabulary *vocabulary,
                                      const char *path,
                                      struct palmette_grammar **grammar,
                                      struct palmette_error **error);

// The bytes of the file that palmette_grammar_save() writes.
palmette_status palmette_grammar_to_bytes(const struct palmette_grammar *grammar,
                                          struct palmette_bytes **bytes,
                                          struct palmette_error **error);

// Reads a grammar from the bytes of its file, which are not kept.
palmette_status palmette_grammar_from_bytes(const struct palmette_vocabulary *vocabulary,
                                            const uint8_t *bytes,
                                            size_t num_bytes,
                                            struct palmette_grammar **grammar,
                                            struct palmette_error **error);

// The first of the bytes, and their number. They live as long as their handle.
const uint8_t *palmette_bytes_data(const struct palmette_bytes *bytes, size_t *num_bytes);

// Frees bytes. NULL is nothing.
void palmette_bytes_free(struct palmette_bytes *bytes);

// The version of the library, such as "0.1.0". It lives for ever.
const char *palmette_version(void);

// Opens a file or folder: tokenizer.json, tekken.json, a SentencePiece model, a tiktoken file or a
// list of pieces.
//
// `end_tokens` are the names or decimal ids of the tokens by which the model stops; without any,
// they are looked for in the configuration files beside it.
palmette_status palmette_vocabulary_open(const char *path,
                                         const char *const *end_tokens,
                                         size_t num_end_tokens,
                                         struct palmette_vocabulary **vocabulary,
                                         struct palmette_error **error);

// Takes an encoding of tiktoken by name, such as "o200k_base".
palmette_status palmette_vocabulary_encoding(const char *name,
                                             struct palmette_vocabulary **vocabulary,
                                             struct palmette_error **error);

// Reads the content of a file that palmette_vocabulary_open() would open, from memory.
palmette_status palmette_vocabulary_read(const uint8_t *content,
                                         size_t num_bytes,
                                         const char *const *end_tokens,
                                         size_t num_end_tokens,
                                         struct palmette_vocabulary **vocabulary,
                                         struct palmette_error **error);

// Takes tokens one by one: `tokens[t]` is token t, and `ends` are the tokens by which the model
// stops, which have no bytes.
palmette_status palmette_vocabulary_from_tokens(const struct palmette_token *tokens,
                                                size_t num_tokens,
                                                const uint32_t *ends,
                                                size_t num_ends,
                                                struct palmette_vocabulary **vocabulary,
                                                struct palmette_error **error);

// Size of the vocabulary: masks have a bit for each token. 0 for NULL.
size_t palmette_vocabulary_num_tokens(const struct palmette_vocabulary *vocabulary);

// Words of 32 bits of a mask over the vocabulary. 0 for NULL.
size_t palmette_vocabulary_mask_words(const struct palmette_vocabulary *vocabulary);

// The bytes of a token, and their number; NULL and 0 for special tokens and ids that no token has.
// They are the vocabulary's and live as long.
const uint8_t *palmette_vocabulary_text(const struct palmette_vocabulary *vocabulary,
                                        uint32_t token,
                                        size_t *num_bytes);

// The tokens by which the model stops, ascending, and their number. They are the vocabulary's and
// live as long.
const uint32_t *palmette_vocabulary_ends(const struct palmette_vocabulary *vocabulary,
                                         size_t *num_ends);

// Statements that the vocabulary's source does not make and that were taken to hold, a line each;
// empty where there are none, NULL for NULL. It is the vocabulary's and lives as long.
const char *palmette_vocabulary_notes(const struct palmette_vocabulary *vocabulary);

// Cuts text into tokens as the vocabulary's own tokenizer does. `num_tokens` becomes their number;
// of them, as many as `capacity` are written to `tokens`.
palmette_status palmette_vocabulary_encode(const struct palmette_vocabulary *vocabulary,
                                           const char *text,
                                           size_t num_bytes,
                                           uint32_t *tokens,
                                           size_t capacity,
                                           size_t *num_tokens,
                                           struct palmette_error **error);

// Frees a vocabulary; grammars over it keep what they need. NULL is nothing.
void palmette_vocabulary_free(struct palmette_vocabulary *vocabulary);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PALMETTE_H */
