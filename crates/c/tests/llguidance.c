/* A program for llguidance's interface, linked with ours: its masks are those of palmette.h along a text. Run by `tests/interface`, by hand
 * under valgrind. */
#include <llguidance.h>
#include <palmette.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program where a condition does not hold. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Tokens: every byte, two words, a special token, two ends. */
enum { NUM_BYTES = 256, NUM_TOKENS = NUM_BYTES + 5, SPECIAL = NUM_BYTES + 2, END, OTHER_END };
static const char *const WORDS[] = {"{\"", "name", "\xFF<call>", "<end>", "<other>"};

/* Cuts by the first word that fits, else by bytes; counts its calls. */
static size_t cut(const void *calls, const uint8_t *bytes, size_t num_bytes, uint32_t *tokens, size_t room) {
    size_t count = 0;
    for (size_t at = 0; at < num_bytes; count++) {
        uint32_t token = bytes[at];
        size_t length = 1;
        for (uint32_t word = 0; word < 2; word++) {
            size_t own = strlen(WORDS[word]);
            if (num_bytes - at >= own && memcmp(bytes + at, WORDS[word], own) == 0) token = NUM_BYTES + word, length = own;
        }
        if (count < room) tokens[count] = token;
        at += length;
    }
    ++*(int *)(uintptr_t)calls;
    return count;
}

static LlgTokenizer *tokenizer(int *calls) {
    static uint32_t lengths[NUM_TOKENS];
    static uint8_t bytes[NUM_BYTES + 64];
    size_t length = 0;
    for (uint32_t token = 0; token < NUM_TOKENS; token++) {
        uint8_t byte = (uint8_t)token;
        const uint8_t *text = token < NUM_BYTES ? &byte : (const uint8_t *)WORDS[token - NUM_BYTES];
        lengths[token] = token < NUM_BYTES ? 1 : (uint32_t)strlen((const char *)text);
        memcpy(bytes + length, text, lengths[token]);
        length += lengths[token];
    }
    static const LlgToken more[] = {OTHER_END};
    LlgTokenizerInitV2 init = {0};
    init.struct_size = sizeof init;
    init.vocab_size = NUM_TOKENS;
    init.tok_eos = END;
    init.token_lens = lengths;
    init.token_bytes = bytes;
    init.tokenize_fn = cut;
    init.tokenize_user_data = calls;
    init.tok_eos_extra = more;
    init.tok_eos_extra_count = 1;
    char error[128] = "";
    LlgTokenizer *made = llg_new_tokenizer_v2(&init, error, sizeof error);
    if (made == NULL) fprintf(stderr, "%s\n", error);
    CHECK(made != NULL);
    init.tok_eos = NUM_TOKENS;
    CHECK(llg_new_tokenizer_v2(&init, error, sizeof error) == NULL && strstr(error, "out of range") != NULL);
    return made;
}

/* The same tokens by palmette.h. */
static palmette_vocabulary *vocabulary(void) {
    static uint8_t bytes[NUM_BYTES];
    palmette_token tokens[NUM_TOKENS] = {{0}};
    for (size_t token = 0; token < NUM_TOKENS; token++) {
        if (token < NUM_BYTES) bytes[token] = (uint8_t)token;
        if (token < SPECIAL) {
            tokens[token].bytes = token < NUM_BYTES ? &bytes[token] : (const uint8_t *)WORDS[token - NUM_BYTES];
            tokens[token].num_bytes = token < NUM_BYTES ? 1 : strlen(WORDS[token - NUM_BYTES]);
        }
    }
    const uint32_t ends[] = {END, OTHER_END};
    palmette_vocabulary *made = NULL;
    CHECK(palmette_vocabulary_from_tokens(tokens, NUM_TOKENS, ends, 2, &made, NULL) == PALMETTE_STATUS_OK);
    return made;
}

static void along_a_text(const LlgConstraintInit *init, const palmette_vocabulary *tokens) {
    const char *schema = "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 3}}, "
                         "\"required\": [\"name\"], \"additionalProperties\": false}";
    const char *text = "{\"name\": \"ab\"}";
    palmette_grammar *grammar = NULL;
    CHECK(palmette_grammar_compile(tokens, "json_schema", schema, strlen(schema), NULL, NULL, NULL, &grammar, NULL) ==
          PALMETTE_STATUS_OK);
    palmette_matcher *ours = NULL;
    CHECK(palmette_matcher_new(grammar, NULL, 0, &ours, NULL) == PALMETTE_STATUS_OK);
    LlgConstraint *constraint = llg_new_constraint_json(init, schema);
    LlgMatcher *matcher = llg_new_matcher(init, "json_schema", schema);
    CHECK(llg_get_error(constraint) == NULL && llg_matcher_get_error(matcher) == NULL);
    const size_t num_bytes = llg_matcher_get_mask_byte_size(matcher);
    CHECK(num_bytes == 4 * palmette_matcher_mask_words(ours));
    uint32_t *expected = calloc(1, num_bytes), *parallel = calloc(1, num_bytes), *row = calloc(1, num_bytes);
    uint32_t cut_text[64];
    const size_t count =
        llg_tokenize_bytes(init->tokenizer, (const uint8_t *)text, strlen(text), cut_text, sizeof cut_text / 4);
    CHECK(count < sizeof cut_text / 4 && cut_text[0] == NUM_BYTES && cut_text[1] == NUM_BYTES + 1);
    CHECK(llg_matcher_validate_tokens(matcher, cut_text, count) == (int32_t)count);
    for (size_t at = 0; at < count; at++) {
        CHECK(palmette_matcher_fill_mask(ours, expected, num_bytes / 4, NULL, NULL) == PALMETTE_STATUS_OK);
        LlgMaskResult mask;
        CHECK(llg_compute_mask(constraint, &mask) == 0 && !mask.is_stop);
        CHECK(memcmp(mask.sample_mask, expected, num_bytes) == 0);
        CHECK(llg_matcher_compute_mask_into(matcher, row, num_bytes) == 0 && memcmp(row, expected, num_bytes) == 0);
        LlgConstraintStep step = {constraint, parallel, num_bytes};
        llg_par_compute_mask(&step, 1, NULL, NULL);
        CHECK(memcmp(parallel, expected, num_bytes) == 0);
        LlgCommitResult commit;
        CHECK(llg_commit_token(constraint, cut_text[at], &commit) == 0 && commit.n_tokens == 1);
        CHECK(llg_matcher_consume_token(matcher, cut_text[at]) == 0);
        CHECK(palmette_matcher_commit(ours, cut_text[at], NULL) == PALMETTE_STATUS_OK);
    }
    LlgMaskResult mask;
    CHECK(llg_compute_mask(constraint, &mask) == 0 && mask.is_stop && llg_is_stopped(constraint));
    CHECK(llg_matcher_is_stopped(matcher) && llg_matcher_is_accepting(matcher));
    CHECK(llg_matcher_compute_mask(matcher) == 0);
    const uint32_t *ends = llg_matcher_get_mask(matcher);
    CHECK(ends[END / 32] == (1u << (END % 32) | 1u << (OTHER_END % 32)) && ends[0] == 0);
    CHECK(llg_matcher_rollback(matcher, 2) == 0 && !llg_matcher_is_stopped(matcher));
    CHECK(llg_matcher_rollback(matcher, count) == -1 && llg_matcher_is_error(matcher));
    free(expected);
    free(parallel);
    free(row);
    llg_free_matcher(matcher);
    llg_free_constraint(constraint);
    palmette_matcher_free(ours);
    palmette_grammar_free(grammar);
}

int main(void) {
    int calls = 0;
    LlgTokenizer *tok = tokenizer(&calls);
    palmette_vocabulary *tokens = vocabulary();
    LlgConstraintInit init;
    llg_constraint_init_set_defaults(&init, tok);
    along_a_text(&init, tokens);
    CHECK(calls > 0);

    /* Forced tokens come with the one that was committed, where the engine takes them. */
    init.ff_tokens_ok = true;
    LlgConstraint *forced = llg_new_constraint_regex(&init, "x12|y");
    LlgCommitResult commit;
    CHECK(llg_commit_token(forced, 'x', &commit) == 0 && commit.n_tokens == 3 && commit.tokens[2] == '2');
    llg_free_constraint(forced);

    /* A special token by its name, in a grammar and in marked text. */
    LlgMatcher *call = llg_new_matcher(&init, "lark", "start: <call> \"a\"");
    CHECK(llg_matcher_get_error(call) == NULL);
    uint32_t ahead[4];
    CHECK(llg_matcher_compute_ff_tokens(call, ahead, 4) == 2 && ahead[0] == SPECIAL && ahead[1] == 'a');
    const uint8_t marked[] = "b\xFF<call>\xFF[97]";
    CHECK(llg_tokenize_bytes_marker(tok, marked, sizeof marked - 1, ahead, 4) == 3);
    CHECK(ahead[0] == 'b' && ahead[1] == SPECIAL && ahead[2] == 'a');
    char text[16];
    CHECK(llg_decode_tokens(tok, ahead, 3, text, sizeof text, LLG_DECODE_INCLUDE_SPECIAL) == 9);
    CHECK(strcmp(text, "b<call>a") == 0);

    /* Work that is called off fails from then on, and a copy made before does not. */
    LlgCancellationHandle *handle = llg_matcher_get_cancellation_handle(call);
    LlgMatcher *copy = llg_clone_matcher(call);
    llg_cancel(handle);
    CHECK(llg_matcher_compute_mask(call) == -1 && llg_matcher_is_cancelled(call));
    CHECK(llg_matcher_compute_mask(copy) == 0 && !llg_matcher_is_cancelled(copy));
    llg_free_cancellation_handle(handle);
    llg_free_matcher(call);
    llg_free_matcher(copy);

    /* Lists of one grammar, and errors that stay. */
    LlgConstraint *list = llg_new_constraint(&init, "{\"grammars\": [{\"lark_grammar\": \"start: /[0-9]/\"}]}");
    CHECK(llg_get_error(list) == NULL);
    CHECK(llg_commit_token(list, 'a', &commit) == -1);
    const char *first = llg_get_error(list);
    CHECK(first != NULL && llg_commit_token(list, '1', &commit) == -1 && llg_get_error(list) == first);
    llg_free_constraint(list);
    char message[160];
    CHECK(llg_validate_grammar(&init, "json", "{\"type\": \"objct\"}", message, sizeof message) == -1);
    CHECK(strstr(message, "object") != NULL);
    CHECK(llg_validate_grammar(&init, "json_object", "", message, sizeof message) == 0 && message[0] == '\0');

    /* A text up to an expression: what may begin it is held back, and given where it was none. */
    LlgStopController *stop = llg_new_stop_controller(tok, NULL, 0, "\\nEND|stop", message, sizeof message);
    CHECK(stop != NULL);
    static const struct {
        uint8_t byte;
        const char *text;
    } SAID[] = {{'a', "a"}, {0xC3, ""}, {0xA9, "\xC3\xA9"}, {'\n', ""}, {'E', ""}, {'x', "\nEx"}, {'s', ""}, {'t', ""}, {'o', ""}};
    size_t length = 0;
    bool stopped = true;
    for (size_t at = 0; at < sizeof SAID / sizeof *SAID; at++) {
        const char *said = llg_stop_commit_token(stop, SAID[at].byte, &length, &stopped);
        CHECK(strcmp(said, SAID[at].text) == 0 && length == strlen(said) && !stopped);
    }
    LlgStopController *other = llg_clone_stop_controller(stop);
    CHECK(strcmp(llg_stop_commit_token(stop, 'p', &length, &stopped), "") == 0 && stopped);
    CHECK(strcmp(llg_stop_commit_token(other, '!', &length, &stopped), "sto!") == 0 && !stopped);
    llg_free_stop_controller(stop);
    llg_free_stop_controller(other);
    CHECK(llg_new_stop_controller(tok, NULL, 0, "a*", message, sizeof message) == NULL && message[0] != '\0');

    palmette_vocabulary_free(tokens);
    llg_free_tokenizer(tok);
    puts("masks by the names of llguidance are as they should be");
    return 0;
}
