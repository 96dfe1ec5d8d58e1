"""
grammar.py: the sentences of the demonstration model, in English, Turkish and Russian.

Each sentence comes with what is known about it: which word a pronoun means, which noun a verb agrees with, which
bracket a bracket closes, and which hidden words the rest of the sentence determines.

Sentences are held out by their content words: a pair of nouns (or a shape of brackets) is either for training or for
checking, never for both. Plain Python, no other module.
"""

import random
import zlib

HELD_OUT_SHARE = 8  # one pair of content words in eight is never trained on


class Sentence:
    """
    words   the sentence, in lower case; punctuation is a word
    roles   (role, from word, to word, words that decide it): what an attention head can be held against
    hidden  (task, word, accepted): hide a piece of the word; any of `accepted` is right, None: the piece itself
    key     the content words; they decide whether the sentence is held out
    """

    def __init__(self, words, key):
        self.words = words
        self.key = key
        self.roles = []
        self.hidden = []

    def text(self):
        """The sentence as a person writes it."""
        text = " ".join(self.words)
        for mark in ".,!?:;":
            text = text.replace(" " + mark, mark)
        text = text.replace(" ' ", "'")
        # The capitals of ı and i are not I and İ in every language: such a sentence keeps its small letter.
        return text if text[0] in "ıi" else text[0].upper() + text[1:]


def is_held_out(key):
    return ("animal", "street") == key[:2] or zlib.crc32(" ".join(key).encode()) % HELD_OUT_SHARE == 0


# --- Words -----------------------------------------------------------------------------------------------------------

NAMES = {
    "en": "anna tom maria john emma paul lucy peter".split(),
    "tr": "ayşe mehmet ali zeynep elif murat selin kaan".split(),
    "ru": "анна мария ольга нина иван пётр олег антон".split(),
}

EN_LIVING = {
    "animal": "animals", "dog": "dogs", "cat": "cats", "horse": "horses", "cow": "cows", "fox": "foxes",
    "bird": "birds", "mouse": "mice", "goat": "goats", "turtle": "turtles", "monkey": "monkeys", "frog": "frogs",
    "rabbit": "rabbits", "elephant": "elephants", "child": "children", "wolf": "wolves", "bear": "bears",
    "lion": "lions", "tiger": "tigers", "duck": "ducks",
}
EN_PLACES = {
    "street": "streets", "road": "roads", "river": "rivers", "bridge": "bridges", "field": "fields",
    "valley": "valleys", "park": "parks", "forest": "forests", "square": "squares", "desert": "deserts",
    "hill": "hills", "garden": "gardens", "path": "paths", "lake": "lakes", "stream": "streams",
    "highway": "highways", "yard": "yards", "beach": "beaches",
}
EN_THINGS = {
    "trophy": "trophies", "book": "books", "ball": "balls", "chair": "chairs", "lamp": "lamps", "piano": "pianos",
    "cake": "cakes", "bike": "bikes", "painting": "paintings", "vase": "vases", "guitar": "guitars", "table": "tables",
    "key": "keys", "stone": "stones",
}
EN_CONTAINERS = {
    "suitcase": "suitcases", "box": "boxes", "bag": "bags", "drawer": "drawers", "car": "cars", "basket": "baskets",
    "cupboard": "cupboards", "cabinet": "cabinets", "room": "rooms", "house": "houses",
}
EN_STATES = "tired hungry scared sleepy sick weak lazy shy young hurt nervous thirsty".split()
EN_PLACE_STATES = "wide long steep deep dark busy muddy crowded noisy slippery rocky icy".split()
EN_HEAVY = "heavy bulky hot sharp big large".split()
EN_BIG = "big large huge tall bulky".split()
EN_SMALL = "small tiny little narrow full".split()
EN_LOOKS = "old new black white red green blue brown beautiful clean".split()
EN_TO_PLACES = "cross enter visit reach explore pass leave".split()
EN_TO_THINGS = "carry lift move hold push take".split()
EN_GOODS = "tea coffee milk bread music cheese soup fruit".split()
EN_BE = {"is": "are", "was": "were", "seems": "seem", "looks": "look"}
EN_ACTS = {"sleeps": "sleep", "waits": "wait", "stays": "stay", "falls": "fall"}
EN_SEES = {"sees": "see", "likes": "like", "follows": "follow", "needs": "need"}

# A Turkish noun, and its endings of the accusative and the dative.
TR_LIVING = "hayvan köpek kedi at inek tilki kuş fare keçi maymun aslan çocuk".split()
TR_PLACES = {
    "cadde": "yi", "yol": "u", "köprü": "yü", "dere": "yi", "tarla": "yı", "meydan": "ı", "park": "ı", "orman": "ı",
    "tepe": "yi", "bahçe": "yi", "vadi": "yi", "göl": "ü", "deniz": "i", "çöl": "ü",
}
TR_THINGS = {"kupa": "yı", "top": "u", "masa": "yı", "sandalye": "yi", "lamba": "yı", "halı": "yı", "taş": "ı",
             "piyano": "yu"}
TR_CONTAINERS = {"bavul": "a", "kutu": "ya", "çanta": "ya", "oda": "ya", "sepet": "e", "çekmece": "ye", "torba": "ya",
                 "araba": "ya"}
# An adjective, and its ending "was".
TR_STATES = {"yorgun": "du", "aç": "tı", "hasta": "ydı", "yaşlı": "ydı", "zayıf": "tı", "uykulu": "ydu",
             "üzgün": "dü", "tembel": "di", "genç": "ti", "yavaş": "tı"}
TR_PLACE_STATES = {"geniş": "ti", "uzun": "du", "derin": "di", "dik": "ti", "karanlık": "tı", "kalabalık": "tı",
                   "çamurlu": "ydu", "kaygan": "dı", "gürültülü": "ydü", "soğuk": "tu"}
TR_HEAVY = {"ağır": "dı", "büyük": "tü", "sıcak": "tı", "keskin": "di"}
TR_BIG = {"büyük": "tü", "yüksek": "ti", "kocaman": "dı"}
TR_SMALL = {"küçük": "tü", "dar": "dı", "dolu": "ydu"}
TR_TO_PLACES = "geçmedi geçemedi görmedi sevmedi bulamadı".split()
TR_TO_THINGS = "taşıyamadı kaldıramadı itemedi almadı".split()
TR_LOOKS = "eski yeni siyah beyaz kırmızı yeşil mavi güzel".split()
TR_PERSONS = {"ben": "um", "sen": "sun", "biz": "uz", "siz": "sunuz", "onlar": "lar"}
TR_ACTS = "koşuyor yürüyor bekliyor çalışıyor okuyor gidiyor geliyor uyuyor".split()
TR_WHEN = ["her gün", "bu sabah", "bugün", "akşam", "sık sık"]
TR_WHERE = ["parkta", "evde", "okulda", "burada", "bahçede"]
TR_WANTED = "elma kitap çay süt ekmek kalem çiçek su".split()
TR_WANTS = "aldı istedi buldu getirdi sattı".split()

# Russian nouns by gender, so that the gender of the pronoun decides nothing. Feminine nouns are stems without "а".
RU_LIVING = {
    "m": "кот пёс конь волк слон тигр ёж заяц щенок осёл".split(),
    "f": "собак кошк коров лис птиц коз белк лягушк черепах обезьян".split(),
    "n": "животное существо насекомое чудовище".split(),
}
RU_PLACES = {
    "m": "мост двор парк луг лес овраг пляж канал тоннель рынок".split(),
    "f": "улиц рек дорог полян троп долин канав лестниц равнин".split(),
    "n": "шоссе поле озеро болото ущелье море".split(),
}
RU_THINGS = "кубок мяч стул торт камень ковёр стол шар".split()
RU_CONTAINERS = "чемодан ящик шкаф рюкзак пакет мешок дом вагон".split()
# An adjective's stem, and its ending of the instrumental for masculine and neuter; the feminine one is "ой".
RU_STATES = {"устал": "ым", "голодн": "ым", "слаб": "ым", "больн": "ым", "сонн": "ым", "испуганн": "ым",
             "молод": "ым", "ленив": "ым", "робк": "им", "ранен": "ым"}
RU_PLACE_STATES = {"широк": "им", "длинн": "ым", "крут": "ым", "глубок": "им", "тёмн": "ым", "опасн": "ым",
                   "шумн": "ым", "грязн": "ым", "скользк": "им", "узк": "им"}
RU_HEAVY = {"тяжёл": "ым", "больш": "им", "горяч": "им", "остр": "ым"}
RU_BIG = {"больш": "им", "высок": "им", "огромн": "ым"}
RU_SMALL = {"маленьк": "им", "тесн": "ым", "полн": "ым"}
RU_TO_PLACES = {"m": "перешёл увидел посетил покинул".split(), "f": "перешла увидела посетила покинула".split(),
                "n": "перешло увидело посетило покинуло".split()}
RU_TO_THINGS = "поднял принёс толкнул унёс".split()
RU_PRONOUNS = {"m": "он", "f": "она", "n": "оно"}
RU_WAS = {"m": "был", "f": "была", "n": "было"}
RU_SUBJECTS = {"ключ": "ключи", "кот": "коты", "собака": "собаки", "книга": "книги", "стол": "столы", "птица": "птицы",
               "слон": "слоны", "лампа": "лампы"}
RU_BESIDE = [("от", "шкафа", "шкафов"), ("у", "дома", "домов"), ("у", "моста", "мостов"), ("около", "реки", "рек"),
             ("около", "стола", "столов"), ("у", "парка", "парков")]
RU_ACTS = {"лежит": "лежат", "стоит": "стоят", "спит": "спят", "ждёт": "ждут", "сидит": "сидят", "падает": "падают"}
RU_WHERE = "здесь там сегодня долго рядом".split()
RU_WANTED = "чай хлеб сыр суп мёд сок сахар рис".split()
RU_WANTS = "любит хочет ищет берёт покупает".split()

BRACKETS = {"(": ")", "[": "]", "{": "}"}
PUNCTUATION = list(".,!?:;'\"-()[]{}")
DIGITS = list("0123456789")
LETTERS = {"en": "abcdefghijklmnopqrstuvwxyz", "tr": "çğıöşü", "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"}
ALPHABETS = {"en": LETTERS["en"], "tr": "abcçdefgğhıijklmnoöprsştuüvyz", "ru": LETTERS["ru"]}


# --- Tools -----------------------------------------------------------------------------------------------------------


def fill(template, **slots):
    """Fills in the slots; returns the words and, for each slot, the index of its last word."""
    words, places = [], {}
    for part in template.split():
        if part[0] == "{" and part[-1] == "}" and len(part) > 2:
            words += slots[part[1:-1]].split()
            places[part[1:-1]] = len(words) - 1
        else:
            words.append(part)
    return words, places


def made_up(rng, language):
    """A word of letters that no dictionary has."""
    letters = rng.choices(ALPHABETS[language], k=rng.randint(2, 5))
    if rng.random() < 0.15:
        letters.append(rng.choice(DIGITS))
    return "".join(letters)


def pair_of(table, rng):
    """A key of the table, or its value: (word, is plural)."""
    singular = rng.choice(list(table))
    plural = rng.random() < 0.5
    return (table[singular] if plural else singular), singular, plural


# --- What a pronoun means --------------------------------------------------------------------------------------------


def resolve(words, places, key, pronoun, first_is_meant, decided_by):
    """A sentence in which `it` means the noun in slot `a` or the noun in slot `b`."""
    sentence = Sentence(words, key)
    meant = "a" if first_is_meant else "b"
    needs = [places["a"], places["b"], places[decided_by]]
    sentence.roles.append(("referent" if pronoun else "antecedent", places["it"], places[meant], needs))
    if not pronoun:
        sentence.hidden.append(("referent", places["it"], None))
    return sentence


def english_referent(rng):
    kind = rng.choice(["place", "place", "place", "thing", "fit"])
    first_is_meant = rng.random() < 0.5
    if kind == "fit":
        a, b, verb = rng.choice(list(EN_THINGS)), rng.choice(list(EN_CONTAINERS)), rng.choice(["fit in", "fit into"])
        adjective = rng.choice(EN_BIG if first_is_meant else EN_SMALL)
    elif kind == "thing":
        a, b, verb = rng.choice(list(EN_LIVING)), rng.choice(list(EN_THINGS)), rng.choice(EN_TO_THINGS)
        adjective = rng.choice(EN_STATES if first_is_meant else EN_HEAVY)
    else:
        a, b, verb = rng.choice(list(EN_LIVING)), rng.choice(list(EN_PLACES)), rng.choice(EN_TO_PLACES)
        adjective = rng.choice(EN_STATES if first_is_meant else EN_PLACE_STATES)
    key = (a, b)
    if kind != "fit" and rng.random() < 0.08:
        a = made_up(rng, "en")
    plain_a, plain_b = a, b
    if rng.random() < 0.15:
        a = rng.choice(EN_LOOKS) + " " + a
    if rng.random() < 0.15:
        b = rng.choice(EN_LOOKS) + " " + b
    pronoun = rng.random() < 0.65
    slots = {
        "a": a, "b": b, "v": verb, "adj": adjective,
        "not": rng.choice(["did not", "did not", "didn ' t", "could not", "couldn ' t", "does not"]),
        "because": rng.choice(["because", "because", "because", "since", "as"]),
        "too": rng.choice(["too", "too", "too", "so", "very", ""]),
        "it": "it" if pronoun else "the " + (plain_a if first_is_meant else plain_b),
        "was": rng.choice(["was", "was", "is"]),
    }
    form = rng.random()
    if form < 0.70:
        template = "the {a} {not} {v} the {b} {because} {it} {was} {too} {adj}"
    elif form < 0.80:
        template = "{because} {it} {was} {too} {adj} , the {a} {not} {v} the {b}"
    elif first_is_meant:
        template = "the {a} {was} {too} {adj} , so {it} {not} {v} the {b}"
    else:
        template = "the {b} {was} {too} {adj} , so the {a} {not} {v} {it}"
    return resolve(*fill(template, **slots), key, pronoun, first_is_meant, "adj")


def turkish_referent(rng):
    kind = rng.choice(["place", "place", "thing", "fit"])
    first_is_meant = rng.random() < 0.5
    if kind == "fit":
        a, (b, ending), verb = rng.choice(list(TR_THINGS)), rng.choice(list(TR_CONTAINERS.items())), "sığmadı"
        table = TR_BIG if first_is_meant else TR_SMALL
    elif kind == "thing":
        a, (b, ending) = rng.choice(TR_LIVING), rng.choice(list(TR_THINGS.items()))
        verb, table = rng.choice(TR_TO_THINGS), TR_STATES if first_is_meant else TR_HEAVY
    else:
        a, (b, ending) = rng.choice(TR_LIVING), rng.choice(list(TR_PLACES.items()))
        verb, table = rng.choice(TR_TO_PLACES), TR_STATES if first_is_meant else TR_PLACE_STATES
    adjective, was = rng.choice(list(table.items()))
    key = (a, b)
    if kind != "fit" and rng.random() < 0.08:
        a = made_up(rng, "tr")
    pronoun = rng.random() < 0.65
    it = "o" if pronoun else (a if first_is_meant else b)
    if rng.random() < 0.15:
        a = rng.choice(TR_LOOKS) + " " + a
    slots = {"a": a, "b": b + ending, "v": verb, "it": it, "was": adjective + was, "adj": adjective,
             "çok": rng.choice(["çok", "çok", "fazla"])}
    if rng.random() < 0.8:
        comma = rng.choice([" ,", ""])
        words, places = fill("{a} {b} {v}" + comma + " çünkü {it} {çok} {was}", **slots)
        return resolve(words, places, key, pronoun, first_is_meant, "was")
    words, places = fill("{it} {çok} {adj} olduğu için {a} {b} {v}", **slots)
    return resolve(words, places, key, pronoun, first_is_meant, "adj")


def russian_referent(rng):
    kind = rng.choice(["place", "place", "thing", "fit"])
    first_is_meant = rng.random() < 0.5
    gender = rng.choice("mmffn") if kind == "place" else "m"
    if kind == "fit":
        a, b, verb = rng.choice(RU_THINGS), rng.choice(RU_CONTAINERS), "поместился в"
        table = RU_BIG if first_is_meant else RU_SMALL
    elif kind == "thing":
        a, b, verb = rng.choice(RU_LIVING["m"]), rng.choice(RU_THINGS), rng.choice(RU_TO_THINGS)
        table = RU_STATES if first_is_meant else RU_HEAVY
    else:
        a, b, verb = rng.choice(RU_LIVING[gender]), rng.choice(RU_PLACES[gender]), rng.choice(RU_TO_PLACES[gender])
        table = RU_STATES if first_is_meant else RU_PLACE_STATES
    stem, ending = rng.choice(list(table.items()))
    key = (a, b)
    if kind != "fit" and gender != "f" and rng.random() < 0.08:
        a = made_up(rng, "ru")
    nominative, accusative = ("а", "у") if gender == "f" else ("", "")
    pronoun = rng.random() < 0.65
    slots = {
        "a": a + nominative, "b": b + accusative, "v": verb, "was": RU_WAS[gender],
        "it": RU_PRONOUNS[gender] if pronoun else (a if first_is_meant else b) + nominative,
        "too": rng.choice(["слишком", "слишком", "очень"]), "adj": stem + ("ой" if gender == "f" else ending),
    }
    if rng.random() < 0.8:
        template = "{a} не {v} {b} , потому что {it} {was} {too} {adj}"
    else:
        template = "так как {it} {was} {too} {adj} , {a} не {v} {b}"
    return resolve(*fill(template, **slots), key, pronoun, first_is_meant, "adj")


# --- Agreement -------------------------------------------------------------------------------------------------------


def agree(words, places, key, forms):
    """A sentence whose verb (slot `verb`) agrees with the noun in slot `s`; `forms` are the verbs that would do so."""
    sentence = Sentence(words, key)
    sentence.roles.append(("subject", places["verb"], places["s"], [places["s"]]))
    sentence.hidden.append(("agreement", places["verb"], forms))
    return sentence


EN_VERBS = [dict(EN_BE, **EN_ACTS), EN_SEES]
EN_SINGULAR = [verb for table in EN_VERBS for verb in table]
EN_PLURAL = [verb for table in EN_VERBS for verb in table.values()]


def english_agreement(rng):
    living = rng.random() < 0.5
    subject, s_key, plural = pair_of(EN_LIVING if living else {**EN_THINGS, **EN_CONTAINERS}, rng)
    other, o_key, other_plural = pair_of({**EN_LIVING, **EN_PLACES, **EN_THINGS, **EN_CONTAINERS}, rng)
    end = rng.random()
    if end < 0.6:
        verb, rest = rng.choice(list(EN_BE.items())), rng.choice(["", "", "very "]) + rng.choice(EN_LOOKS)
    elif end < 0.85:
        verb, rest = rng.choice(list(EN_ACTS.items())), rng.choice(["here", "there", "today", "again"])
    else:
        verb, rest = rng.choice(list(EN_SEES.items())), "the " + rng.choice(list(EN_THINGS))
    slots = {"s": subject, "o": other, "verb": verb[plural], "rest": rest,
             "near": rng.choice(["near", "behind", "under", "with", "beside", "of", "to"])}
    form = rng.random()
    if form < 0.65:
        template = "the {s} {near} the {o} {verb} {rest}"
    elif form < 0.8:
        slots["w"] = rng.choice(list(EN_SEES.items()))[plural]
        template = "the {s} that {w} the {o} {verb} {rest}"
    else:
        slots["w"] = rng.choice(list(EN_SEES.items()))[other_plural]
        template = "the {s} that the {o} {w} {verb} {rest}"
    words, places = fill(template, **slots)
    return agree(words, places, (s_key, o_key), EN_PLURAL if plural else EN_SINGULAR)


def turkish_agreement(rng):
    person, ending = rng.choice(list(TR_PERSONS.items()))
    verb = rng.choice(TR_ACTS)
    where = rng.choice(TR_WHERE)
    words, places = fill(rng.choice(["{s} {when} {where} {verb}", "{s} {where} {verb}", "{when} {s} {where} {verb}"]),
                         s=person, when=rng.choice(TR_WHEN), where=where, verb=verb + ending)
    sentence = Sentence(words, (person, verb, where))
    sentence.roles.append(("subject", places["verb"], places["s"], [places["s"]]))
    sentence.hidden.append(("agreement", places["verb"], ["##" + ending]))
    return sentence


def russian_agreement(rng):
    subject, s_key, plural = pair_of(RU_SUBJECTS, rng)
    near, one, many = rng.choice(RU_BESIDE)
    verb = rng.choice(list(RU_ACTS.items()))[plural]
    words, places = fill("{s} {near} {o} {verb} {where}", s=subject, near=near, o=rng.choice([one, many]), verb=verb,
                         where=rng.choice(RU_WHERE))
    return agree(words, places, (s_key, one), list(RU_ACTS.values()) if plural else list(RU_ACTS))


# --- Copies ----------------------------------------------------------------------------------------------------------


def copies(words, places, key, pairs):
    """A sentence that says a word twice: either copy determines the other."""
    sentence = Sentence(words, key)
    for pair in pairs:
        sentence.hidden += [("copy", places[slot], None) for slot in pair]
    return sentence


def a_name(rng, language):
    return made_up(rng, language) if rng.random() < 0.15 else rng.choice(NAMES[language])


def english_copy(rng):
    verb, thing = rng.choice(["likes", "wants", "has", "buys", "needs"]), rng.choice(EN_GOODS)
    words, places = fill("{n} {v} {x} {and} {m} {v2} {x2} {too}", n=a_name(rng, "en"), m=a_name(rng, "en"), v=verb,
                         v2=verb, x=thing, x2=thing, **{"and": rng.choice([", and", "and"])},
                         too=rng.choice(["too", "also"]))
    return copies(words, places, (verb, thing), [("v", "v2"), ("x", "x2")])


def turkish_copy(rng):
    verb, thing, second = rng.choice(TR_WANTS), rng.choice(TR_WANTED), a_name(rng, "tr")
    vowels = [letter for letter in second if letter in "aeıioöuü"]
    too = "da" if vowels and vowels[-1] in "aıou" else "de"
    words, places = fill("{n} {x} {v} , {m} {too} {x2} {v2}", n=a_name(rng, "tr"), m=second, v=verb, v2=verb, x=thing,
                         x2=thing, too=too)
    return copies(words, places, (thing, verb), [("v", "v2"), ("x", "x2")])


def russian_copy(rng):
    verb, thing = rng.choice(RU_WANTS), rng.choice(RU_WANTED)
    words, places = fill("{n} {v} {x} , {and} {m} тоже {v2} {x2}", n=a_name(rng, "ru"), m=a_name(rng, "ru"), v=verb,
                         v2=verb, x=thing, x2=thing, **{"and": rng.choice(["и", "а"])})
    return copies(words, places, (verb, thing), [("v", "v2"), ("x", "x2")])


def spelled(rng):
    """A made-up word twice or three times: only its letters are known."""
    language = rng.choice(list(ALPHABETS))
    word, other = made_up(rng, language), made_up(rng, language)
    template = rng.choice(["{a} , {b} , {c}", "{a} {b} {c}", "{a} - {c} ? {b} !", "\" {a} \" : {c} ; \" {b} \""])
    words, places = fill(template, a=word, b=other, c=word)
    sentence = copies(words, places, (word,), [("a", "c")])
    sentence.hidden = []
    return sentence


# --- Brackets --------------------------------------------------------------------------------------------------------


def brackets(rng):
    """Nested brackets of three kinds around letters, digits and words; at most three deep, at most five pairs."""
    language = rng.choice(list(ALPHABETS))
    nouns = {"en": list(EN_LIVING), "tr": TR_LIVING, "ru": RU_LIVING["m"]}[language]
    words, open_at, pairs, left = [], [], [], rng.randint(1, 5)
    style = rng.choice(["letters", "letters", "digits", "words"])

    def content():
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            if style == "words":
                words.append(rng.choice(nouns))
            else:
                words.append(rng.choice(DIGITS if style == "digits" else ALPHABETS[language]))

    if rng.random() < 0.6:
        content()
    while left or open_at:
        if left and len(open_at) < 3 and (not open_at or rng.random() < 0.55):
            open_at.append(len(words))
            words.append(rng.choice(list(BRACKETS)))
            left -= 1
        else:
            opener = open_at.pop()
            pairs.append((len(words), opener))
            words.append(BRACKETS[words[opener]])
        content()
    shape = "".join(word for word in words if word in "()[]{}")
    sentence = Sentence(words, (shape,) if len(pairs) > 2 else (shape, *words))
    marks = [mark for pair in pairs for mark in pair]
    for closer, opener in pairs:
        sentence.roles.append(("bracket", closer, opener, [mark for mark in marks if mark != closer]))
        sentence.hidden.append(("bracket", closer, None))
    return sentence


# --- All of them -----------------------------------------------------------------------------------------------------

FAMILIES = {
    "referent en": (english_referent, 24), "referent tr": (turkish_referent, 13), "referent ru": (russian_referent, 13),
    "agreement en": (english_agreement, 10), "agreement tr": (turkish_agreement, 3),
    "agreement ru": (russian_agreement, 5), "copy en": (english_copy, 3), "copy tr": (turkish_copy, 3),
    "copy ru": (russian_copy, 3), "brackets": (brackets, 18), "spelled": (spelled, 5),
}


def shifted(sentence, front, words):
    """The sentence with `front` words in front of it, as the new list of words has it."""
    moved = Sentence(words, sentence.key)
    moved.roles = [(role, i + front, j + front, [n + front for n in needs]) for role, i, j, needs in sentence.roles]
    moved.hidden = [(task, i + front, accepted) for task, i, accepted in sentence.hidden]
    return moved


FRONTS = {
    "en": ["yesterday", "today", "{n} says that", "{n} thinks that", "i know that", "this morning", "well ,"],
    "tr": ["dün", "bugün", "bu sabah", "{n} dedi ki", "evet ,"],
    "ru": ["вчера", "сегодня", "утром", "{n} говорит , что", "да ,"],
}
ENDS = [[], [], ["."], ["."], ["."], ["!"], ["?"], [";"]]


def one(rng, family, for_training):
    """A sentence of the family with its trimmings, from the trained or from the held-out ones."""
    make, _ = FAMILIES[family]
    sentence = make(rng)
    while is_held_out(sentence.key) == for_training:
        sentence = make(rng)
    front = []
    language = family[-2:]
    if language in FRONTS and rng.random() < 0.2:
        front, _ = fill(rng.choice(FRONTS[language]), n=rng.choice(NAMES[language]))
    return shifted(sentence, len(front), front + sentence.words + rng.choice(ENDS))


def any_one(rng, for_training=True):
    family = rng.choices(list(FAMILIES), [weight for _, weight in FAMILIES.values()])[0]
    return one(rng, family, for_training)


def held_out(each, seed=2):
    """`each` sentences of each family, none of them trained on; always the same ones: (family, sentence)."""
    rng = random.Random(seed)
    return [(family, one(rng, family, False)) for family in FAMILIES for _ in range(each)]


def words_of_the_tables():
    """Every piece of a word that the vocabulary must have, in a fixed order."""
    pieces = {}

    def take(value):
        if isinstance(value, str):
            for word in value.split():
                pieces.setdefault(word)
        elif isinstance(value, dict):
            for key, item in value.items():
                take(key)
                take(item)
        else:
            for item in value:
                take(item)

    for table in (NAMES, EN_LIVING, EN_PLACES, EN_THINGS, EN_CONTAINERS, EN_STATES, EN_PLACE_STATES, EN_HEAVY, EN_BIG,
                  EN_SMALL, EN_LOOKS, EN_TO_PLACES, EN_TO_THINGS, EN_GOODS, EN_BE, EN_ACTS, EN_SEES):
        take(table.values() if table is NAMES else table)
    take("the a it did does do not could didn couldn t because since as too so very is was are were fit in into and "
         "also has likes wants buys needs near behind under with beside of to that here there today again "
         "yesterday says thinks i know this morning well on at")
    endings = {}
    for table in (TR_PLACES, TR_THINGS, TR_CONTAINERS, TR_STATES, TR_PLACE_STATES, TR_HEAVY, TR_BIG, TR_SMALL,
                  TR_PERSONS):
        take(list(table))
        endings.update(dict.fromkeys(table.values()))
    take([TR_LIVING, TR_TO_PLACES, TR_TO_THINGS, TR_LOOKS, TR_ACTS, TR_WHEN, TR_WHERE, TR_WANTED, TR_WANTS])
    take("sığmadı çok fazla çünkü o olduğu için dün dedi ki evet de da")
    for table in (RU_STATES, RU_PLACE_STATES, RU_HEAVY, RU_BIG, RU_SMALL):
        take(list(table))
        endings.update(dict.fromkeys(table.values()))
    take([list(RU_LIVING.values()), list(RU_PLACES.values()), RU_THINGS, RU_CONTAINERS, RU_TO_PLACES["m"],
          RU_TO_THINGS, list(RU_PRONOUNS.values()), list(RU_WAS.values()), RU_SUBJECTS, RU_BESIDE, RU_ACTS, RU_WHERE,
          RU_WANTED, RU_WANTS])
    take("перешла перешло не потому что слишком очень так как поместился в тоже и а вчера сегодня утром говорит да")
    # A whole word here would keep the stem and its ending from being seen as two pieces.
    for word in ("собака", "собаки", "птица", "птицы"):
        pieces.pop(word, None)
    return list(pieces), ["##" + ending for ending in [*endings, "ой"] if len(ending) > 1]
