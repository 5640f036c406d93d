// Names in charts lead to the console's own pages.
leading.address = (wanted) => {
  const {text, reason, ...rest} = wanted;
  const query = new URLSearchParams({state: "all", ...rest});
  if (text || reason) query.set("q", text || named(reason));
  return `/findings?${query}`;
};
