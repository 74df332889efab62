/* Palmette by the names of llguidance's C interface, for programs that were written for it. Apache-2.0 or MIT.
 *
 * Names, structures and meanings are those of llguidance 1.9; grammars, masks and messages are Palmette's. See
 * docs/c.md for what is otherwise.
 */

#ifndef LLGUIDANCE_H
#define LLGUIDANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text of special tokens is left out, and bytes are given as they are. */
#define LLG_DECODE_NONE 0
/* Special tokens are given by their names. */
#define LLG_DECODE_INCLUDE_SPECIAL 1
/* Bytes that are no UTF-8 become U+FFFD. */
#define LLG_DECODE_VALID_UTF8 2

typedef uint32_t LlgToken;

// A wish that a matcher works no more. It may outlive the matcher.
typedef struct LlgCancellationHandle LlgCancellationHandle;

// A text being written under a grammar, by the calls of llguidance.
typedef struct LlgConstraint LlgConstraint;

// A text being followed under a grammar, by the calls of llguidance.
typedef struct LlgMatcher LlgMatcher;

// The text of tokens, held back where it may be the beginning of what ends it or of a character.
typedef struct LlgStopController LlgStopController;

// A vocabulary and its tokenizer, shared by constraints and threads.
typedef struct LlgTokenizer LlgTokenizer;

// Limits of llguidance's parser. They are not read: the work of compiling and of masks is counted
// otherwise here.
typedef struct LlgParserLimits {
  // Items in a row.
  size_t max_items_in_row;
  // Fuel of the lexer's beginning.
  uint64_t initial_lexer_fuel;
  // Fuel of the lexer for a mask.
  uint64_t step_lexer_fuel;
  // Items for a mask.
  size_t step_max_items;
  // States of the lexer.
  size_t max_lexer_states;
  // Symbols of the grammar.
  size_t max_grammar_size;
  // Work ahead for large lexemes.
  bool precompute_large_lexemes;
  // Positions in errors.
  bool verbose_errors;
} LlgParserLimits;

// Parameters of a constraint or matcher.
typedef struct LlgConstraintInit {
  // The tokenizer.
  const struct LlgTokenizer *tokenizer;
  // Level of the log for llg_flush_logs(): 0 nothing, 1 warnings, 2 commits too.
  uint32_t log_buffer_level;
  // Level of what is written to the error stream; not read.
  uint32_t log_stderr_level;
  // True when `llg_commit_token` may give more tokens than the one committed.
  bool ff_tokens_ok;
  // True when tokens may be taken back; none are.
  bool backtrack_ok;
  // Limits, which are not read.
  struct LlgParserLimits limits;
} LlgConstraintInit;

// Mask of a step.
typedef struct LlgMaskResult {
  // The mask; null where the text is at its end. It lives to the next call.
  const uint32_t *sample_mask;
  // Temperature, which no grammar here sets.
  float temperature;
  // True when the text is at its end.
  bool is_stop;
} LlgMaskResult;

// Tokens of a commit.
typedef struct LlgCommitResult {
  // The tokens to append. They live to the next call.
  const uint32_t *tokens;
  // Number of them.
  uint32_t n_tokens;
  // True when the text was at its end.
  bool is_stop;
} LlgCommitResult;

// A constraint and the place of its mask.
typedef struct LlgConstraintStep {
  // The constraint; null is passed over.
  struct LlgConstraint *constraint;
  // The place of the mask.
  uint32_t *mask_dest;
  // Bytes of that.
  size_t mask_byte_len;
} LlgConstraintStep;

// A function that is called when work is done.
typedef void (*LlgCallback)(const void *user_data);

// Cutting of bytes into tokens by the caller: writes as many tokens as there is room for, and
// gives the number of all. Threads call it at once.
typedef size_t (*LlgTokenizeFn)(const void *user_data,
                                const uint8_t *bytes,
                                size_t bytes_len,
                                uint32_t *output_tokens,
                                size_t output_tokens_len);

// Parameters of a tokenizer, first version; zeroed before members are set.
typedef struct LlgTokenizerInit {
  // Number of tokens.
  uint32_t vocab_size;
  // Token that ends a text.
  uint32_t tok_eos;
  // Lengths of the tokens.
  const uint32_t *token_lens;
  // Bytes of the tokens, one after another; those of special tokens begin with 0xFF.
  const uint8_t *token_bytes;
  // Content of a tokenizer.json instead of the two, up to NUL.
  const char *tokenizer_json;
  // True when `tokenize_fn` takes UTF-8 alone.
  bool tokenize_assumes_string;
  // Cutting of bytes into tokens.
  LlgTokenizeFn tokenize_fn;
  // True when text may be cut by the longest token first, where there is no `tokenize_fn`.
  bool use_approximate_greedy_tokenize_fn;
  // First argument of `tokenize_fn`.
  const void *tokenize_user_data;
  // Parts of the vocabulary by regular expressions; not read.
  const char *const *slices;
} LlgTokenizerInit;

// Parameters of a tokenizer with several end tokens; `struct_size` bytes of it are read.
typedef struct LlgTokenizerInitV2 {
  // Size of the structure as the caller knows it.
  size_t struct_size;
  // Number of tokens.
  uint32_t vocab_size;
  // Token that ends a text.
  uint32_t tok_eos;
  // Lengths of the tokens.
  const uint32_t *token_lens;
  // Bytes of the tokens, one after another; those of special tokens begin with 0xFF.
  const uint8_t *token_bytes;
  // Content of a tokenizer.json instead of the two, up to NUL.
  const char *tokenizer_json;
  // True when `tokenize_fn` takes UTF-8 alone.
  bool tokenize_assumes_string;
  // Cutting of bytes into tokens.
  LlgTokenizeFn tokenize_fn;
  // True when text may be cut by the longest token first, where there is no `tokenize_fn`.
  bool use_approximate_greedy_tokenize_fn;
  // First argument of `tokenize_fn`.
  const void *tokenize_user_data;
  // Parts of the vocabulary by regular expressions; not read.
  const char *const *slices;
  // More tokens that end a text.
  const uint32_t *tok_eos_extra;
  // Number of those.
  uint32_t tok_eos_extra_count;
} LlgTokenizerInitV2;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a constraint of a list of grammars or a Lark grammar; its error is asked for by
// llg_get_error().
struct LlgConstraint *llg_new_constraint(const struct LlgConstraintInit *init,
                                         const char *llguidance);

// Makes a constraint of a regular expression.
struct LlgConstraint *llg_new_constraint_regex(const struct LlgConstraintInit *init,
                                               const char *regex);

// Makes a constraint of a JSON Schema.
struct LlgConstraint *llg_new_constraint_json(const struct LlgConstraintInit *init,
                                              const char *json_schema);

// Makes a constraint of a Lark grammar.
struct LlgConstraint *llg_new_constraint_lark(const struct LlgConstraintInit *init,
                                              const char *lark);

// Makes a constraint of a type by its name: "regex", "json", "json_schema", "json_object", "lark",
// "llguidance" or "guidance".
struct LlgConstraint *llg_new_constraint_any(const struct LlgConstraintInit *init,
                                             const char *constraint_type,
                                             const char *data);

// The first error, or null. It lives as long as the constraint.
const char *llg_get_error(const struct LlgConstraint *cc);

// The temperature, which is 0: no grammar here sets one.
float llg_get_temperature(const struct LlgConstraint *_cc);

// True when the last mask found the text at its end, or after an error.
bool llg_is_stopped(const struct LlgConstraint *cc);

// Computes the mask of the next token; 0, or -1 after an error.
int32_t llg_compute_mask(struct LlgConstraint *cc, struct LlgMaskResult *res_p);

// Commits a token that the mask allows; 0, or -1 after an error.
int32_t llg_commit_token(struct LlgConstraint *cc, uint32_t token, struct LlgCommitResult *res_p);

// Copies a constraint.
struct LlgConstraint *llg_clone_constraint(const struct LlgConstraint *cc);

// The log since it was asked for last. It lives to the next call.
const char *llg_flush_logs(struct LlgConstraint *cc);

// Frees a constraint.
void llg_free_constraint(struct LlgConstraint *cc);

// Sets the parameters to those that llguidance has unless told otherwise.
void llg_constraint_init_set_defaults(struct LlgConstraintInit *init,
                                      const struct LlgTokenizer *tokenizer);

// Checks a grammar without a tokenizer: 0 where it can be read, 1 with a warning, -1 with an
// error, in `message`.
int32_t llg_validate_grammar(const struct LlgConstraintInit *init,
                             const char *constraint_type,
                             const char *data,
                             char *message,
                             size_t message_len);

// Makes a matcher of a type's name and its text; its error is asked for by
// llg_matcher_get_error().
struct LlgMatcher *llg_new_matcher(const struct LlgConstraintInit *init,
                                   const char *constraint_type,
                                   const char *data);

// Writes the mask of the next token into a buffer of as many bytes as
// llg_matcher_get_mask_byte_size() says; 0, or -1 after an error.
int32_t llg_matcher_compute_mask_into(struct LlgMatcher *matcher,
                                      uint32_t *mask_dest,
                                      size_t mask_byte_len);

// Computes the mask of the next token; 0, or -1 after an error.
int32_t llg_matcher_compute_mask(struct LlgMatcher *matcher);

// The mask that was computed, or null. It lives to the next call.
const uint32_t *llg_matcher_get_mask(struct LlgMatcher *matcher);

// Bytes of a mask.
size_t llg_matcher_get_mask_byte_size(const struct LlgMatcher *matcher);

// A handle by which any thread calls off the matcher's work.
struct LlgCancellationHandle *llg_matcher_get_cancellation_handle(struct LlgMatcher *matcher);

// Another handle of the same wish.
struct LlgCancellationHandle *llg_clone_cancellation_handle(const struct LlgCancellationHandle *handle);

// Calls the matcher's work off for good.
void llg_cancel(const struct LlgCancellationHandle *handle);

// Frees a handle of a cancellation.
void llg_free_cancellation_handle(struct LlgCancellationHandle *handle);

// True when the matcher was called off before another error.
bool llg_matcher_is_cancelled(const struct LlgMatcher *matcher);

// Moves over a token; 0, or -1 after an error.
int32_t llg_matcher_consume_token(struct LlgMatcher *matcher, uint32_t token);

// Moves over tokens; 0, or -1 after an error.
int32_t llg_matcher_consume_tokens(struct LlgMatcher *matcher,
                                   const uint32_t *tokens,
                                   size_t n_tokens);

// The first error, or null. It lives as long as the matcher.
const char *llg_matcher_get_error(struct LlgMatcher *matcher);

// True after an error.
bool llg_matcher_is_error(const struct LlgMatcher *matcher);

// Frees a matcher.
void llg_free_matcher(struct LlgMatcher *matcher);

// Takes back tokens; 0, or -1 after an error.
int32_t llg_matcher_rollback(struct LlgMatcher *matcher, size_t num_tokens);

// Begins again; 0, or -1 after an error.
int32_t llg_matcher_reset(struct LlgMatcher *matcher);

// True when the text may end here.
bool llg_matcher_is_accepting(struct LlgMatcher *matcher);

// True when nothing follows but an end token, or after an error.
bool llg_matcher_is_stopped(const struct LlgMatcher *matcher);

// Number of tokens that could be consumed; -1 after an error.
int32_t llg_matcher_validate_tokens(struct LlgMatcher *matcher,
                                    const uint32_t *tokens,
                                    size_t n_tokens);

// Writes the tokens that must follow; gives their number, -1 after an error.
int32_t llg_matcher_compute_ff_tokens(struct LlgMatcher *matcher,
                                      uint32_t *output,
                                      size_t output_len);

// Copies a matcher.
struct LlgMatcher *llg_clone_matcher(const struct LlgMatcher *matcher);

// Computes masks of several constraints: before it returns where there is no callback, else on
// threads of its own, until the callback. Errors are those of the constraints.
void llg_par_compute_mask(const struct LlgConstraintStep *steps,
                          size_t n_steps,
                          const void *user_data,
                          LlgCallback done_cb);

// Makes a controller that ends a text at any of these tokens, or where an expression matches; null
// where it cannot be, with the reason in `error_string`.
struct LlgStopController *llg_new_stop_controller(const struct LlgTokenizer *tokenizer,
                                                  const uint32_t *stop_tokens,
                                                  size_t stop_tokens_len,
                                                  const char *stop_rx,
                                                  char *error_string,
                                                  size_t error_string_len);

// Adds a token; gives the text that is sure by then, which ends with NUL and lives to the next
// call, its length, and whether the text is at its end. Bytes that are no UTF-8 become U+FFFD.
// Where a limit is exceeded the text is at its end, too.
const char *llg_stop_commit_token(struct LlgStopController *stop_ctrl,
                                  uint32_t token,
                                  size_t *output_len_p,
                                  bool *is_stopped_p);

// Copies a controller.
struct LlgStopController *llg_clone_stop_controller(const struct LlgStopController *stop_ctrl);

// Frees a controller.
void llg_free_stop_controller(struct LlgStopController *stop_ctrl);

// Cuts bytes into tokens; gives the number of all, of which as many as there is room for are
// written.
size_t llg_tokenize_bytes(const struct LlgTokenizer *tok,
                          const uint8_t *bytes,
                          size_t bytes_len,
                          uint32_t *output_tokens,
                          size_t output_tokens_len);

// Cuts bytes in which 0xFF begins the name of a special token, or its number in brackets.
size_t llg_tokenize_bytes_marker(const struct LlgTokenizer *tok,
                                 const uint8_t *bytes,
                                 size_t bytes_len,
                                 uint32_t *output_tokens,
                                 size_t output_tokens_len);

// Writes tokens as people read them, and NUL; gives the bytes that it takes.
size_t llg_stringify_tokens(const struct LlgTokenizer *tok,
                            const uint32_t *tokens,
                            size_t n_tokens,
                            char *output,
                            size_t output_len);

// Writes the text of tokens, and NUL; gives the bytes that it takes. `flags` are the sum of
// LLG_DECODE_INCLUDE_SPECIAL and LLG_DECODE_VALID_UTF8.
size_t llg_decode_tokens(const struct LlgTokenizer *tok,
                         const uint32_t *tokens,
                         size_t n_tokens,
                         char *output,
                         size_t output_len,
                         uint32_t flags);

// The version: that of llguidance whose names these are, and ours. It lives for ever.
const char *llg_get_version(void);

// Makes a tokenizer; null where it cannot be, with the reason in `error_string`.
struct LlgTokenizer *llg_new_tokenizer(const struct LlgTokenizerInit *tok_init,
                                       char *error_string,
                                       size_t error_string_len);

// Makes a tokenizer with several end tokens; null where it cannot be, with the reason in
// `error_string`.
struct LlgTokenizer *llg_new_tokenizer_v2(const struct LlgTokenizerInitV2 *tok_init,
                                          char *error_string,
                                          size_t error_string_len);

// Another handle of a tokenizer.
struct LlgTokenizer *llg_clone_tokenizer(const struct LlgTokenizer *tok);

// Frees a tokenizer; constraints of it keep what they need.
void llg_free_tokenizer(struct LlgTokenizer *tok);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LLGUIDANCE_H */
