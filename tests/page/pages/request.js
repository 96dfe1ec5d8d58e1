/** request.js: two queries and three keys, so that rows taken for columns cannot pass. */
export const REQUEST = {
  inputs: {
    query: [
      [1, 0],
      [0.5, -1],
    ],
    key: [
      [0, 1],
      [1, 1],
      [2, -1],
    ],
  },
  tokens: { query: ["a", "b"], key: ["x", "y", "z"] },
};
