/**
 * texts.js: every word on the page, in English, Turkish and Russian, in one table. {name} stands for a value.
 */

/** What a person is told in the words of this table. */
export class Problem extends Error {
  /** @param {string} key @param {Record<string, unknown>} [values] */
  constructor(key, values) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

export const LANGUAGES = [
  ["en", "English"],
  ["tr", "Türkçe"],
  ["ru", "Русский"],
];

/** @type {Record<string, string[]>} */
export const TEXTS = {
  title: ["attention, step by step", "adım adım dikkat", "внимание шаг за шагом"],
  language: ["Language", "Dil", "Язык"],
  theme: ["Theme", "Tema", "Тема"],
  "theme.auto": ["System theme", "Sistem teması", "Тема системы"],
  "theme.light": ["Light", "Açık", "Светлая"],
  "theme.dark": ["Dark", "Koyu", "Тёмная"],

  presets: ["Example", "Örnek", "Пример"],
  "preset.sentence": ["A sentence, four heads", "Bir cümle, dört başlık", "Предложение, четыре головы"],
  "preset.three": ["Three tokens, by hand", "Üç sözcük, elle", "Три токена вручную"],
  "preset.causal": ["Causal language model", "Nedensel dil modeli", "Причинная языковая модель"],
  "preset.padding": ["Padding in a batch", "Yığında dolgu", "Дополнение в пакете"],
  "preset.cross": ["Translation: cross-attention", "Çeviri: çapraz dikkat", "Перевод: перекрёстное внимание"],
  "preset.grouped": ["Grouped heads with RoPE", "Gruplu başlıklar, RoPE", "Групповые головы с RoPE"],
  "preset.window": ["Sliding window", "Kayan pencere", "Скользящее окно"],
  "preset.sinks": ["Attention sinks", "Dikkat gideri", "Стоки внимания"],
  "preset.scripts": ["Arabic, Chinese, Russian", "Arapça, Çince, Rusça", "Арабский, китайский, русский"],
  "preset.bare": ["Given Q, K, V: 5 × 7", "Verilen Q, K, V: 5 × 7", "Заданные Q, K, V: 5 × 7"],
  "preset.twelve": ["12 heads × 64 tokens", "12 başlık × 64 sözcük", "12 голов × 64 токена"],
  "preset.large": ["A large map: 4096 × 4096", "Büyük harita: 4096 × 4096", "Большая карта: 4096 × 4096"],
  "preset.own": ["Your own", "Kendiniz", "Своё"],

  undo: ["Undo", "Geri al", "Отменить"],
  redo: ["Redo", "Yinele", "Повторить"],
  share: ["Share", "Paylaş", "Поделиться"],
  "share.done": [
    "The address of this page now holds what you see. It has been copied.",
    "Bu sayfanın adresi artık gördüğünüzü içeriyor ve kopyalandı.",
    "Адрес страницы теперь содержит то, что вы видите; он скопирован.",
  ],
  "share.long": [
    "This request is too long for an address. Export it as a page or as JSON instead.",
    "Bu istek bir adres için çok uzun. Sayfa ya da JSON olarak dışa aktarın.",
    "Запрос слишком длинный для адреса. Сохраните его как страницу или JSON.",
  ],
  "share.broken": [
    "the address does not hold a whole request.",
    "adres tam bir istek içermiyor.",
    "адрес не содержит целого запроса.",
  ],
  "share.endpoint": [
    "“{name}” is not an endpoint of this page.",
    "“{name}” bu sayfanın bir uç noktası değil.",
    "«{name}» — не адрес запросов этой страницы.",
  ],
  "share.layer": [
    "“{name}” cannot name a kept layer.",
    "“{name}” saklanan bir katmanın adı olamaz.",
    "«{name}» не может быть именем сохранённого слоя.",
  ],
  "request.inputs": [
    "the request needs inputs.query, a tensor.",
    "istekte inputs.query tensörü olmalı.",
    "в запросе нужен тензор inputs.query.",
  ],
  "request.member": [
    "{name} must be an object.",
    "{name} bir nesne olmalı.",
    "{name} должен быть объектом.",
  ],
  "request.tokens": [
    "tokens must be lists of words.",
    "tokens sözcük listeleri olmalı.",
    "tokens должны быть списками слов.",
  ],
  copy: ["Copy", "Kopyala", "Копировать"],
  "copy.json": ["Request (JSON)", "İstek (JSON)", "Запрос (JSON)"],
  "copy.byHand": [
    "The browser does not let the page copy; the text is selected here.",
    "Tarayıcı kopyalamaya izin vermiyor; metin burada seçili.",
    "Браузер не разрешает копировать; текст выделен здесь.",
  ],
  copied: ["Copied", "Kopyalandı", "Скопировано"],
  export: ["Export", "Dışa aktar", "Экспорт"],
  "export.html": ["This page (HTML)", "Bu sayfa (HTML)", "Эта страница (HTML)"],
  "export.large": [
    "Too many cells for SVG; PNG shows the same.",
    "SVG için çok fazla hücre; PNG aynısını gösterir.",
    "Слишком много ячеек для SVG; PNG покажет то же.",
  ],

  layer: ["Kept layer", "Saklanan katman", "Сохранённый слой"],
  "layer.label": ["On this server", "Bu sunucuda", "На этом сервере"],
  "layer.search": ["Part of a name", "Adın bir parçası", "Часть имени"],
  "layer.none": ["Choose one", "Birini seçin", "Выберите"],
  "layer.note": [
    "the server adds its weights, options and masks.",
    "ağırlıkları, seçenekleri ve maskeleri sunucu ekler.",
    "веса, параметры и маски добавляет сервер.",
  ],
  request: ["Request", "İstek", "Запрос"],
  text: ["Text", "Metin", "Текст"],
  "text.label": ["Sentence", "Cümle", "Предложение"],
  "text.make": ["Make tokens", "Sözcüklere ayır", "Разбить на токены"],
  "text.note": [
    "Seeded random numbers stand in for a trained model: equal words get equal vectors, no head has learned.",
    "Eğitilmiş model yerine tohumlu rastgele sayılar: aynı sözcük aynı vektörü alır, başlıklar öğrenmemiştir.",
    "Вместо обученной модели — случайные числа с зерном: одинаковые слова равны, головы ничему не учились.",
  ],
  "text.layer": [
    "Words become seeded random vectors of the layer's width; the weights are the layer's own.",
    "Sözcükler katmanın genişliğinde tohumlu rastgele vektörler olur; ağırlıklar katmanın kendisinindir.",
    "Слова становятся случайными векторами (по зерну) той же ширины, что у слоя; веса — самого слоя.",
  ],
  random: [
    "Random vectors stand in for the words: this is not what the model makes of this text.",
    "Sözcüklerin yerinde rastgele vektörler var: model bu metinden bunu üretmez.",
    "Вместо слов — случайные векторы: модель построила бы по этому тексту другое.",
  ],
  "random.short": ["random inputs", "rastgele girdiler", "случайный вход"],
  options: ["Options", "Seçenekler", "Параметры"],
  heads: ["Heads", "Başlıklar", "Головы"],
  head: ["head", "başlık", "голова"],
  kvHeads: ["K, V heads", "K, V başlıkları", "Головы K, V"],
  "kvHeads.same": ["as many", "aynı sayıda", "так же"],
  batch: ["batch", "yığın", "пакет"],
  scale: ["Scale", "Ölçek", "Масштаб"],
  window: ["Window", "Pencere", "Окно"],
  causal: ["Causal", "Nedensel", "Причинная маска"],
  residual: ["Residual (+ X)", "Artık bağlantı (+ X)", "Остаточная связь (+ X)"],
  norm: ["Norm", "Norm", "Норма"],
  none: ["none", "yok", "нет"],
  off: ["off", "kapalı", "нет"],
  dropout: ["Dropout (training)", "Dropout (eğitim)", "Dropout (обучение)"],
  seed: ["Seed", "Tohum", "Зерно"],
  painted: ["A painted mask is in force.", "Boyanmış bir maske geçerli.", "Действует нарисованная маска."],
  "painted.clear": ["Remove it", "Kaldır", "Убрать"],
  own: ["Your data", "Verileriniz", "Свои данные"],
  "own.label": [
    "A request, an answer, a matrix; JSON or CSV",
    "İstek, yanıt ya da matris; JSON veya CSV",
    "Запрос, ответ или матрица; JSON или CSV",
  ],
  "own.use": ["Use it", "Kullan", "Открыть"],
  "own.file": ["Open a file", "Dosya aç", "Файл…"],
  "own.note": [
    "Files (JSON, CSV, NPY, safetensors) can be dropped anywhere on the page.",
    "Dosyalar (JSON, CSV, NPY, safetensors) sayfanın her yerine bırakılabilir.",
    "Файлы (JSON, CSV, NPY, safetensors) можно бросить в любое место страницы.",
  ],
  "own.number": [
    "“{text}” in row {row} is not a number.",
    "{row}. satırdaki “{text}” bir sayı değil.",
    "«{text}» в строке {row} — не число.",
  ],
  "own.ragged": [
    "row {row} has another length than the first.",
    "{row}. satırın uzunluğu ilkinden farklı.",
    "длина строки {row} не такая, как у первой.",
  ],
  "own.gap": [
    "a field is empty. Only rows of weights that sum to 1 may have masked cells.",
    "bir alan boş. Yalnızca toplamı 1 olan ağırlık satırlarında maskeli hücre olabilir.",
    "есть пустое поле. Скрытые ячейки бывают только в строках весов с суммой 1.",
  ],
  "own.empty": ["there are no numbers in it.", "içinde sayı yok.", "в нём нет чисел."],
  "own.npy": [
    "an NPY file must hold little-endian numbers in C order, in two dimensions or more.",
    "NPY dosyası C sırasında, little-endian ve en az iki boyutlu sayılar içermeli.",
    "файл NPY должен содержать числа little-endian в порядке C, не менее двух измерений.",
  ],
  "own.binary": [
    "“{name}” is neither text in UTF-8 nor NPY nor safetensors.",
    "“{name}” ne UTF-8 metin, ne NPY, ne de safetensors.",
    "«{name}» — не текст в UTF-8, не NPY и не safetensors.",
  ],
  gone: ["The server cannot be reached.", "Sunucuya ulaşılamıyor.", "Сервер недоступен."],
  "gone.again": [
    "The page keeps trying; what it shows is old.",
    "Sayfa denemeyi sürdürüyor; gösterilen eski.",
    "Страница продолжает попытки; показанное устарело.",
  ],
  retry: ["Try now", "Şimdi dene", "Повторить сейчас"],
  "own.wrong": ["This cannot be used: {why}", "Bu kullanılamıyor: {why}", "Это не удалось открыть: {why}"],
  key: ["API key", "API anahtarı", "Ключ API"],
  "key.use": ["Use it", "Kullan", "Применить"],
  refused: ["The server refuses:", "Sunucu reddetti:", "Сервер отказал:"],

  steps: ["Steps", "Adımlar", "Шаги"],
  stage: ["Matrix", "Matris", "Матрица"],
  "group.input": ["Input and weights", "Girdi ve ağırlıklar", "Вход и веса"],
  "group.project": ["Projections", "İzdüşümler", "Проекции"],
  "group.score": ["Scores", "Puanlar", "Оценки"],
  "group.attend": ["Weights", "Dikkat", "Внимание"],
  "group.mix": ["Context", "Bağlam", "Контекст"],
  "group.finish": ["Output", "Çıktı", "Выход"],
  views: ["View", "Görünüm", "Вид"],
  "tab.map": ["Map", "Harita", "Карта"],
  "tab.links": ["Links", "Bağlar", "Связи"],
  "tab.layers": ["Layers", "Katmanlar", "Слои"],
  "layers.note": [
    "The same request to every layer of the same widths. Click or Enter opens one.",
    "Aynı genişlikteki her katmana aynı istek. Tıklama ya da Enter açar.",
    "Один запрос ко всем слоям той же ширины. Щелчок или Enter открывает.",
  ],
  "tab.table": ["Table", "Tablo", "Таблица"],
  "table.window": [
    "rows {from}–{to}, columns {first}–{last}",
    "satır {from}–{to}, sütun {first}–{last}",
    "строки {from}–{to}, столбцы {first}–{last}",
  ],
  sort: ["Sort heads", "Başlıkları sırala", "Порядок голов"],
  "sort.order": ["in order", "sırayla", "по порядку"],
  "sort.entropy": ["by entropy", "entropiye göre", "по энтропии"],
  "sort.first": ["by first token", "ilk sözcüğe göre", "по первому токену"],
  "sort.diagonal": ["by diagonal", "köşegene göre", "по диагонали"],
  "sort.distance": ["by distance", "uzaklığa göre", "по расстоянию"],
  palette: ["Colours", "Renkler", "Цвета"],
  "palette.viridis": ["Viridis", "Viridis", "Viridis"],
  "palette.cividis": ["Cividis", "Cividis", "Cividis"],
  "palette.grey": ["Grey", "Gri", "Серый"],
  range: ["Range", "Aralık", "Диапазон"],
  "range.full": ["0 – 1", "0 – 1", "0 – 1"],
  "range.max": ["0 – max", "0 – en büyük", "0 – макс."],
  "range.log": ["log", "log", "лог."],
  masked: ["masked", "maskeli", "скрыто"],
  paint: ["Paint mask", "Maske boya", "Рисовать маску"],
  "paint.how": [
    "Draw over cells to hide or show keys; on the keyboard: m",
    "Anahtarları gizlemek için hücreleri boyayın; klavyede: m",
    "Ведите по ячейкам, чтобы скрыть или открыть ключи; на клавиатуре: m",
  ],
  "zoom.in": ["Zoom in", "Yakınlaştır", "Приблизить"],
  "zoom.out": ["Zoom out", "Uzaklaştır", "Отдалить"],
  "zoom.fit": ["Show all", "Tümünü göster", "Показать всё"],
  compare: ["Compare", "Karşılaştır", "Сравнение"],
  "compare.keep": ["Keep as A", "A olarak tut", "Запомнить как A"],
  "compare.again": ["Renew A", "A'yı yenile", "Обновить A"],
  "compare.drop": ["Drop A", "A'yı bırak", "Убрать A"],
  "kept.fixed": [
    "A stays as it was kept. Choose B to change it.",
    "A tutulduğu gibi kalır. Değiştirmek için B'yi seçin.",
    "A остаётся такой, какой была сохранена. Чтобы менять, выберите B.",
  ],
  stale: [
    "Old: this answers an earlier request, not the present one.",
    "Eski: bu, önceki isteğin yanıtı; şimdikinin değil.",
    "Устарело: это ответ на прежний запрос, а не на нынешний.",
  ],
  "compare.now": ["B: now", "B: şimdi", "B: сейчас"],
  "compare.kept": ["A", "A", "A"],
  "compare.difference": ["B − A", "B − A", "B − A"],
  queries: ["Queries", "Sorgular", "Запросы"],
  "links.mode": ["Which links", "Hangi bağlar", "Какие связи"],
  "links.top": ["Strongest of each token", "En güçlü bağlar", "Самые сильные"],
  "links.threshold": ["All from a weight on", "Ağırlık eşiği", "От порога"],

  cell: ["The number", "Sayı", "Число"],
  edit: ["Change it", "Değiştir", "Изменить"],
  rest: ["{n} more", "{n} tane daha", "ещё {n}"],
  here: ["this page, float64", "bu sayfa, float64", "страница, float64"],
  server: ["server", "sunucu", "сервер"],
  "note.givenAsIs": ["Given in the request as it is.", "İstekte olduğu gibi verildi.", "Задано в запросе как есть."],
  "note.normedFirst": [
    "X has passed the norm in front first.",
    "X önce öndeki normdan geçti.",
    "X сначала прошёл через норму.",
  ],
  "note.hiddenBy": ["Hidden by {mask}.", "Gizleyen: {mask}.", "Скрыто: {mask}."],
  "note.noKeys": [
    "No key is left to this query: all weights are 0.",
    "Bu sorguya anahtar kalmadı: ağırlıklar 0.",
    "Для запроса не осталось ключей: все веса равны 0.",
  ],
  "note.softmaxSum": [
    "max = {top}, sum of exponentials = {sum}",
    "en büyük = {top}, üstellerin toplamı = {sum}",
    "макс. = {top}, сумма экспонент = {sum}",
  ],
  "note.dropoutSeed": [
    "p = {p}, seed {seed}: the same seed drops the same weights.",
    "p = {p}, tohum {seed}: aynı tohum aynı ağırlıkları siler.",
    "p = {p}, зерно {seed}: одно зерно отбрасывает одни и те же веса.",
  ],
  "note.fromHead": [
    "Feature {feature} of head {head}.",
    "{head}. başlığın {feature}. özelliği.",
    "Признак {feature} головы {head}.",
  ],
  "note.sameAsBefore": ["The same as the step before.", "Önceki adımla aynı.", "То же, что и предыдущий шаг."],
  "mask.causal": ["the causal mask", "nedensel maske", "причинная маска"],
  "mask.window": ["the window", "pencere", "окно"],
  "mask.key_lengths": ["the length of the keys", "anahtar uzunluğu", "длина ключей"],
  "mask.query_lengths": ["the length of the queries", "sorgu uzunluğu", "длина запросов"],
  "mask.padding": ["the padding", "dolgu", "дополнение"],
  "mask.attend": ["the painted or given mask", "boyanmış ya da verilmiş maske", "нарисованная или заданная маска"],
  "mask.bias": ["a bias of −∞", "−∞ ek değeri", "смещение −∞"],
  "mask.documents": ["the bounds of documents", "belge sınırları", "границы документов"],
  "mask.blocks": ["the blocks", "bloklar", "блоки"],

  checks: ["Checked here", "Burada doğrulandı", "Проверено здесь"],
  "check.good": [
    "Everything shown agrees with this page's own float64.",
    "Gösterilen her şey sayfanın float64 hesabıyla uyuşuyor.",
    "Всё показанное совпадает с расчётом страницы в float64.",
  ],
  "check.bad": [
    "The numbers differ from this page's own float64.",
    "Sayılar sayfanın float64 hesabından farklı.",
    "Числа отличаются от расчёта страницы в float64.",
  ],
  "check.now": ["Checking…", "Doğrulanıyor…", "Проверяется…"],
  "check.local": [
    "Opened from disk: computed by this page, in float64.",
    "Diskten açıldı: bu sayfa float64 ile hesapladı.",
    "Открыто с диска: посчитано этой страницей в float64.",
  ],
  "check.unknown": [
    "Not checked in full: this page has no equation for {names}.",
    "Tam doğrulanmadı: sayfada {names} için denklem yok.",
    "Проверено не полностью: у страницы нет формулы для {names}.",
  ],
  "check.failed": ["Not checked: {why}", "Doğrulanmadı: {why}", "Не проверено: {why}"],
  "check.nothing": ["Nothing to compare.", "Karşılaştırılacak bir şey yok.", "Нечего сравнивать."],
  "check.difference": ["Largest difference", "En büyük fark", "Наибольшая разница"],
  "check.in": ["in {name}", "{name} adımında", "в {name}"],
  "check.sums": ["Row sums", "Satır toplamları", "Суммы строк"],
  "check.empty": ["Rows without keys", "Anahtarsız satırlar", "Строки без ключей"],
  "check.compared": ["Compared", "Karşılaştırılan", "Сравнено"],
  "check.steps": ["{n} steps, every number", "{n} adım, her sayı", "шагов: {n}, каждое число"],
  "check.sample": ["8 rows of the map", "haritanın 8 satırı", "8 строк карты"],
  "check.time": ["Computed in", "Hesaplama", "Вычисление"],
  "check.round": ["Round trip", "Gidiş dönüş", "Туда и обратно"],
};

/** @param {string} wanted such as "tr-TR" */
export function languageFrom(wanted) {
  const short = wanted.slice(0, 2).toLowerCase();
  return LANGUAGES.some(([id]) => id === short) ? short : "en";
}

/** @param {string} language @returns {(key: string, values?: Record<string, unknown>) => string} */
export function textsOf(language) {
  const at = LANGUAGES.findIndex(([id]) => id === language);
  return (key, values = {}) => {
    const text = TEXTS[key]?.[at];
    if (text === undefined) throw new Error("no text for " + key);
    return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  };
}
