// Masks of a batch in C++, whose handles free themselves: which tokens may begin and follow in three grammars.
//
//     c++ -std=c++17 mask.cpp $(pkg-config --cflags --libs palmette) -o mask && ./mask
#include <palmette.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// An error as an exception: its message has the value, the rule and the way out.
static void must(palmette_error *error) {
    if (error == nullptr) return;
    std::string message = palmette_error_message(error);
    palmette_error_free(error);
    throw std::runtime_error(message);
}

// A handle that is freed by the function of its kind.
template <typename T, void (*FREE)(T *)>
struct Freeing {
    void operator()(T *handle) const { FREE(handle); }
};
template <typename T, void (*FREE)(T *)>
using Handle = std::unique_ptr<T, Freeing<T, FREE>>;
using Vocabulary = Handle<palmette_vocabulary, palmette_vocabulary_free>;
using Grammar = Handle<palmette_grammar, palmette_grammar_free>;
using Matcher = Handle<palmette_matcher, palmette_matcher_free>;
using Batch = Handle<palmette_batch, palmette_batch_free>;

// Runs a call that makes a handle.
template <typename H, typename Call>
static H make(Call call) {
    typename H::pointer made = nullptr;
    palmette_error *error = nullptr;
    call(&made, &error);
    must(error);
    return H(made);
}

static Vocabulary letters(std::string_view of) {
    std::vector<palmette_token> tokens;
    for (const char &letter : of) tokens.push_back({reinterpret_cast<const uint8_t *>(&letter), 1, nullptr});
    tokens.push_back({nullptr, 0, "<end>"});
    const uint32_t end = static_cast<uint32_t>(of.size());
    return make<Vocabulary>([&](auto made, auto error) {
        palmette_vocabulary_from_tokens(tokens.data(), tokens.size(), &end, 1, made, error);
    });
}

int main() try {
    constexpr std::string_view LETTERS = "0123456789abcdef\"[]{},:- ";
    Vocabulary vocabulary = letters(LETTERS);
    std::vector<Matcher> matchers;
    for (auto [language, text] : {std::pair{"json_schema", R"({"enum": ["a", "b", 7]})"},
                                  std::pair{"lark", "start: \"[\" /[0-9]/+ \"]\""}, std::pair{"regex", "[a-f]{2,4}"}}) {
        Grammar grammar = make<Grammar>([&](auto made, auto error) {
            palmette_grammar_compile(vocabulary.get(), language, text, std::strlen(text), nullptr, nullptr, nullptr, made,
                                     error);
        });
        matchers.push_back(make<Matcher>(
            [&](auto made, auto error) { palmette_matcher_new(grammar.get(), nullptr, 0, made, error); }));
    }

    Batch batch = make<Batch>([](auto made, auto error) { palmette_batch_new(2, made, error); });
    const size_t words = palmette_vocabulary_mask_words(vocabulary.get());
    std::vector<uint32_t> masks(matchers.size() * words);
    std::vector<const palmette_matcher *> rows;
    for (const Matcher &matcher : matchers) rows.push_back(matcher.get());
    palmette_error *error = nullptr;
    palmette_batch_fill(batch.get(), rows.data(), rows.size(), masks.data(), words, nullptr, nullptr, &error);
    must(error);
    for (size_t row = 0; row < rows.size(); row++) {
        std::string allowed;
        for (size_t token = 0; token < LETTERS.size(); token++)
            if (masks[row * words + token / 32] >> (token % 32) & 1) allowed += LETTERS[token];
        std::printf("row %zu may begin with one of: %s\n", row, allowed.c_str());
    }
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
