/* The interface in C, from a vocabulary to masks of a batch: every handle is made, used and freed. Run by `tests/interface`, by hand
 * under valgrind. */
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

/* Ends the program where a call fails. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        palmette_error *error = NULL;                                                                                  \
        if ((call) != PALMETTE_STATUS_OK) {                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, palmette_error_message(error));                         \
            palmette_error_free(error);                                                                                \
            exit(1);                                                                                                   \
        }                                                                                                              \
        CHECK(error == NULL);                                                                                          \
    } while (0)

static bool is_allowed(const uint32_t *words, uint32_t token) { return words[token / 32] >> (token % 32) & 1; }

/* Tokens: every byte, then some words, then the end. */
enum { NUM_BYTES = 256, NUM_WORDS = 4, END = NUM_BYTES + NUM_WORDS, NUM_TOKENS };

static palmette_vocabulary *vocabulary(void) {
    static const char *const words[NUM_WORDS] = {"{\"", "\": ", "name", "\"}"};
    static uint8_t bytes[NUM_BYTES];
    palmette_token tokens[NUM_TOKENS] = {{0}};
    for (size_t byte = 0; byte < NUM_BYTES; byte++) {
        bytes[byte] = (uint8_t)byte;
        tokens[byte].bytes = &bytes[byte];
        tokens[byte].num_bytes = 1;
    }
    for (size_t word = 0; word < NUM_WORDS; word++) {
        tokens[NUM_BYTES + word].bytes = (const uint8_t *)words[word];
        tokens[NUM_BYTES + word].num_bytes = strlen(words[word]);
    }
    tokens[END].name = "<end>";
    const uint32_t ends[] = {END};
    palmette_vocabulary *made = NULL;
    MUST(palmette_vocabulary_from_tokens(tokens, NUM_TOKENS, ends, 1, &made, &error));
    CHECK(palmette_vocabulary_num_tokens(made) == NUM_TOKENS);
    size_t num_ends = 0;
    CHECK(palmette_vocabulary_ends(made, &num_ends)[0] == END && num_ends == 1);
    CHECK(palmette_vocabulary_notes(made)[0] == '\0');
    return made;
}

static palmette_grammar *compile(const palmette_vocabulary *tokens, const char *language, const char *text,
                                 const char *options) {
    palmette_grammar *made = NULL;
    MUST(palmette_grammar_compile(tokens, language, text, strlen(text), options, NULL, NULL, &made, &error));
    CHECK(palmette_grammar_num_tokens(made) == NUM_TOKENS);
    return made;
}

int main(void) {
    CHECK(palmette_version()[0] != '\0');
    palmette_vocabulary *tokens = vocabulary();
    palmette_grammar *grammar =
        compile(tokens, "json_schema", "{\"properties\": {\"name\": {\"enum\": [7, 8]}}, \"required\": [\"name\"], "
                                       "\"additionalProperties\": false, \"type\": \"object\"}",
                "{\"whitespace\": \"compact\"}");
    CHECK(palmette_grammar_notes(grammar)[0] == '\0');

    /* A refused schema tells what and where. */
    const char *wrong = "{\"type\": \"objct\"}";
    palmette_grammar *none = NULL;
    palmette_error *refused = NULL;
    CHECK(palmette_grammar_compile(tokens, "json_schema", wrong, strlen(wrong), NULL, NULL, NULL, &none, &refused) ==
          PALMETTE_STATUS_GRAMMAR);
    CHECK(none == NULL && strcmp(palmette_error_pointer(refused), "/type") == 0);
    CHECK(palmette_error_status(refused) == PALMETTE_STATUS_GRAMMAR && palmette_error_line(refused) == 1);
    palmette_error_free(refused);

    palmette_matcher *matcher = NULL;
    MUST(palmette_matcher_new(grammar, NULL, 0, &matcher, &error));
    const size_t words = palmette_matcher_mask_words(matcher);
    CHECK(words == palmette_vocabulary_mask_words(tokens));
    uint32_t *mask = calloc(words * 4, sizeof *mask);
    CHECK(mask != NULL);
    MUST(palmette_matcher_fill_mask(matcher, mask, words, NULL, &error));
    CHECK(is_allowed(mask, '{') && is_allowed(mask, NUM_BYTES) && !is_allowed(mask, '}') && !is_allowed(mask, END));

    uint8_t forced[16] = {0};
    size_t count = 0;
    MUST(palmette_matcher_forced_bytes(matcher, forced, sizeof forced, &count, &error));
    CHECK(count == 8 && memcmp(forced, "{\"name\":", count) == 0);
    CHECK(palmette_matcher_commit(matcher, '}', NULL) == PALMETTE_STATUS_NOT_ALLOWED);
    MUST(palmette_matcher_commit_bytes(matcher, forced, count, &error));

    /* A draft of which one token is kept, and the masks along it. */
    const uint32_t draft[] = {'7', '7', '}'};
    MUST(palmette_matcher_accepted_prefix(matcher, draft, 3, &count, &error));
    CHECK(count == 1);
    MUST(palmette_matcher_fill_draft_masks(matcher, draft, 3, mask, words, NULL, &count, &error));
    CHECK(count == 1 && is_allowed(mask, '8') && is_allowed(mask + words, '}') && !is_allowed(mask + 2 * words, END));

    /* A fork goes its own way, in a batch beside the matcher that it was. */
    palmette_matcher *fork = NULL;
    MUST(palmette_matcher_fork(matcher, &fork, &error));
    palmette_grammar *other = compile(tokens, "regex", "a|b", NULL);
    palmette_matcher *letter = NULL;
    MUST(palmette_matcher_new(other, NULL, 0, &letter, &error));
    palmette_vocabulary_free(tokens);
    palmette_grammar_free(other);
    palmette_grammar_free(grammar);
    const uint32_t rest[] = {'8', '}', END};
    MUST(palmette_matcher_commit_all(fork, rest, 3, &error));
    CHECK(palmette_matcher_has_ended(fork) && palmette_matcher_num_commits(fork) == 4);
    palmette_batch *batch = NULL;
    MUST(palmette_batch_new(2, &batch, &error));
    const palmette_matcher *rows[] = {matcher, fork, letter, NULL};
    const palmette_lengths lengths[] = {{0, SIZE_MAX}, {0, SIZE_MAX}, {0, 1}, {0, 0}};
    int32_t statuses[] = {-1, -1, -1, -1};
    memset(mask, 0xFF, words * 4 * sizeof *mask);
    MUST(palmette_batch_fill(batch, rows, 4, mask, words, lengths, statuses, &error));
    CHECK(is_allowed(mask, '7') && !is_allowed(mask, 'a') && !is_allowed(mask + words, END));
    CHECK(is_allowed(mask + 2 * words, 'a') && mask[3 * words] == UINT32_MAX && statuses[3] == PALMETTE_STATUS_OK);
    MUST(palmette_matcher_rollback(fork, 2, &error));
    bool accepting = true;
    MUST(palmette_matcher_is_accepting(fork, &accepting, &error));
    CHECK(!accepting);
    MUST(palmette_matcher_fewest_tokens(fork, &count, &error));
    CHECK(count == 1);
    uint32_t way[4] = {0};
    MUST(palmette_matcher_shortest_completion(fork, way, 4, &count, &error));
    CHECK(count == 1 && way[0] == '}');
    palmette_batch_free(batch);
    palmette_matcher_free(matcher);
    palmette_matcher_free(fork);
    palmette_matcher_free(letter);
    free(mask);
    puts("masks from C are as they should be");
    return 0;
}
